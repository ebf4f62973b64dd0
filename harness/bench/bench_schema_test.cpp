// docs/bench.schema.json says what is written and demanded here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collectives/communicator.h"
#include "collectives/record.h"
#include "harness/bench/sample_record.h"
#include "memory/dtype.h"
#include "memory/ledger.h"

namespace zeroproof::harness {
namespace {

using scenarios::Json;

Json document(const std::string& name) {
    const std::string file = std::string(ZEROPROOF_SOURCE_DIR) + "/docs/" + name;
    return scenarios::parse_json(scenarios::read_text_file(file), file);
}

bool is_of_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "null") return value.is_null();
    ADD_FAILURE() << "unknown type " << type;
    return false;
}

// Whether a value obeys a schema, of the keywords that ours use; others are a failure.
class Schema {
  public:
    explicit Schema(const std::string& name) : root_(document(name)) {}

    bool accepts(const Json& value) const { return accepts(root_, value); }
    const Json& root() const { return root_; }

  private:
    bool accepts(const Json& schema, const Json& value) const {
        return std::ranges::all_of(schema.items(), [&](const auto& keyword) {
            return obeys(schema, keyword.key(), keyword.value(), value);
        });
    }

    bool obeys(const Json& schema, const std::string& keyword, const Json& rule,
               const Json& value) const {
        if (keyword == "$schema" || keyword == "title" || keyword == "description" ||
            keyword == "$defs")
            return true;
        if (keyword == "$ref") return obeys_reference(rule.get<std::string>(), value);
        if (keyword == "const") return value == rule;
        if (keyword == "enum") return std::ranges::find(rule, value) != rule.end();
        if (keyword == "type")
            return rule.is_array()
                       ? std::ranges::any_of(
                             rule, [&](const Json& type) { return is_of_type(value, type); })
                       : is_of_type(value, rule);
        if (keyword == "oneOf")
            return std::ranges::count_if(rule,
                                         [&](const Json& one) { return accepts(one, value); }) == 1;
        if (keyword == "minimum") return !value.is_number() || value >= rule;
        if (keyword == "maximum") return !value.is_number() || value <= rule;
        if (keyword == "exclusiveMinimum") return !value.is_number() || value > rule;
        if (keyword == "minLength")
            return !value.is_string() || value.get<std::string>().size() >= rule;
        if (keyword == "maxLength")
            return !value.is_string() || value.get<std::string>().size() <= rule;
        if (keyword == "minItems") return !value.is_array() || value.size() >= rule;
        if (keyword == "items")
            return !value.is_array() || std::ranges::all_of(value, [&](const Json& item) {
                return accepts(rule, item);
            });
        if (keyword == "required")
            return !value.is_object() || std::ranges::all_of(rule, [&](const Json& key) {
                return value.contains(key.get<std::string>());
            });
        if (keyword == "properties") return obeys_properties(rule, value);
        if (keyword == "additionalProperties")
            return rule != false || !value.is_object() ||
                   std::ranges::all_of(value.items(), [&](const auto& item) {
                       return schema.at("properties").contains(item.key());
                   });
        ADD_FAILURE() << "unknown keyword " << keyword;
        return false;
    }

    bool obeys_reference(const std::string& reference, const Json& value) const {
        if (reference.starts_with("#"))
            return accepts(root_.at(Json::json_pointer(reference.substr(1))), value);
        return Schema(reference).accepts(value);
    }

    bool obeys_properties(const Json& properties, const Json& value) const {
        if (!value.is_object()) return true;
        return std::ranges::all_of(properties.items(), [&](const auto& property) {
            return !value.contains(property.key()) ||
                   accepts(property.value(), value.at(property.key()));
        });
    }

    Json root_;
};

bool is_read(const Json& json) {
    try {
        parse_bench_json(json.dump(), "r.json");
    } catch (const scenarios::BadInput&) {
        return false;
    }
    return true;
}

std::set<std::string> keys_of(const Json& object) {
    std::set<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.insert(key);
    return keys;
}

TEST(BenchSchema, AcceptsWhatIsWritten) {
    const Schema schema("bench.schema.json");
    for (const char* shape : {"1x4", "2x2", "4x2"}) {
        BenchRecord record = sample_record(shape);
        EXPECT_TRUE(schema.accepts(Json::parse(to_bench_json(record)))) << shape;
        record.complete = false;
        record.ended_by = "a rank has died";
        record.operations.resize(1);
        record.stages.clear();
        record.fits.clear();
        EXPECT_TRUE(schema.accepts(Json::parse(to_bench_json(record)))) << shape;
    }
}

TEST(BenchSchema, DemandsAndKnowsTheKeysThatAreDemandedAndRead) {
    const Schema schema("bench.schema.json");
    const Json good = Json::parse(to_bench_json(sample_record("2x2")));
    const struct {
        const char* definition;  // empty is the document itself
        const char* place;       // of one in the record
    } rows[] = {
        {"", ""},
        {"/$defs/operation", "/operations/7"},
        {"/$defs/timing", "/operations/7/timing"},
        {"/$defs/sent_elements/oneOf/1", "/operations/7/sent_elements"},
        {"/$defs/prediction/oneOf/1", "/operations/7/prediction"},
        {"/$defs/stage", "/stages/1"},
        {"/$defs/timing", "/stages/1/timing"},
        {"/$defs/volume", "/stages/1/volumes/0"},
        {"/$defs/fit", "/fits/0"},
        {"/$defs/fit/properties/latency_s", "/fits/0/latency_s"},
        {"/$defs/fit/properties/errors", "/fits/0/errors"},
    };
    for (const auto& [definition, place] : rows) {
        const Json& described = schema.root().at(Json::json_pointer(definition));
        EXPECT_EQ(described.at("additionalProperties"), false) << definition;
        EXPECT_EQ(keys_of(described.at("properties")), keys_of(good[Json::json_pointer(place)]))
            << definition;
        for (const std::string& key : keys_of(described.at("properties"))) {
            Json less = good;
            less[Json::json_pointer(place)].erase(key);
            EXPECT_EQ(schema.accepts(less), is_read(less)) << place << "/" << key;
        }
        Json more = good;
        more[Json::json_pointer(place)]["colour"] = 1;
        EXPECT_FALSE(schema.accepts(more)) << place;
        EXPECT_FALSE(is_read(more)) << place;
    }
}

TEST(BenchSchema, BoundsAreThoseOfTheReader) {
    const Schema schema("bench.schema.json");
    const Json good = Json::parse(to_bench_json(sample_record("2x2")));
    const struct {
        const char* place;
        Json value;
    } rows[] = {
        {"/operations/0/timing/seconds", Json::array()},
        {"/operations/0/timing/seconds/0", 0},
        {"/operations/0/timing/seconds/0", "1"},
        {"/operations/0/bytes", 0},
        {"/operations/0/bytes", 1.5},
        {"/operations/0/bytes", (std::int64_t{1} << 53) + 1},
        {"/operations/0/algorithm", ""},
        {"/operations/0/algorithm", std::string(101, 'a')},
        {"/operations/0/sent_elements", 0},
        {"/operations/0/bus_factor", -1},
        {"/stages/0/stage", 4},
        {"/stages/0/micro_steps", 0},
        {"/stages/0/parameters", 0},
        {"/stages/0/compute_seconds", -1},
        {"/topology/nodes", 0},
        {"/processors", -1},
        {"/version", 2},
    };
    for (const auto& [place, value] : rows) {
        Json bad = good;
        bad[Json::json_pointer(place)] = value;
        EXPECT_FALSE(schema.accepts(bad)) << place << " " << value;
        EXPECT_FALSE(is_read(bad)) << place << " " << value;
    }
}

template <typename Enum>
std::set<std::string> names(std::size_t count) {
    std::set<std::string> all;
    for (std::size_t i = 0; i < count; ++i) all.emplace(name_of(static_cast<Enum>(i)));
    return all;
}

TEST(BenchSchema, ListsTheNamesThatAreRead) {
    const Json defs = document("bench.schema.json").at("$defs");
    const auto listed = [&](const char* place) {
        const Json& list = defs.at(Json::json_pointer(place)).at("enum");
        return std::set<std::string>(list.begin(), list.end());
    };
    EXPECT_EQ(listed("/op"), names<collectives::Op>(8));
    EXPECT_EQ(listed("/type"), names<memory::DType>(std::size(memory::kAllDTypes)));
    EXPECT_EQ(listed("/volume/properties/traffic"), names<collectives::Traffic>(3));
    EXPECT_EQ(listed("/volume/properties/phase"), names<memory::Phase>(memory::kPhases));
}

}  // namespace
}  // namespace zeroproof::harness
