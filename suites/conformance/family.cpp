#include "suites/conformance/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "suites/conformance/case_reader.h"

namespace zeroproof::suites {

namespace {

constexpr std::size_t kMostCases = 100'000;

// The values of one place in a sweep; what a value is called in the id.
struct Axis {
    std::string key;
    std::vector<scenarios::Json> values;
    std::vector<std::string> labels;
};

Axis read_axis(const std::string& key, const scenarios::JsonReader& values) {
    Axis axis{key, {}, {}};
    // {"label": value, ...}, for values that are long, or [value, ...]
    if (values.json().is_object()) {
        for (const auto& [label, value] : values.json().items()) {
            axis.values.push_back(value);
            axis.labels.push_back(label);
        }
    } else {
        for (const scenarios::JsonReader& value : values.items()) {
            axis.values.push_back(value.json());
            axis.labels.push_back(value.json().is_string() ? value.text() : value.json().dump());
        }
    }
    if (axis.values.empty()) values.fail("nothing to sweep over");
    if (std::set(axis.labels.begin(), axis.labels.end()).size() < axis.labels.size())
        values.fail("a value stands twice: two cases would have one name");
    return axis;
}

// The object with `changes` laid over it.
scenarios::Json merged(scenarios::Json object, const scenarios::Json& changes) {
    for (const auto& [key, value] : changes.items()) object[key] = value;
    return object;
}

// The clauses on invariance compare a case with its twin element by element: both must train the
// same parameters by the same program, and differ in what the family says.
void check_twin(const Case& c, const std::string& differs_in, const scenarios::JsonReader& twin) {
    const Case& other = c.twin.front();
    if (c.transport || other.transport) twin.fail("a test of the transport has no twin");
    const bool cut_otherwise = differs_in == "tensor parallelism";
    const auto find = [&](const ParameterCase& p) {
        return std::ranges::find_if(other.parameters, [&](const ParameterCase& q) {
            return p.name == q.name && (p.shape == q.shape || cut_otherwise) &&
                   p.trainable == q.trainable;
        });
    };
    const bool same_parameters = c.parameters.size() == other.parameters.size() &&
                                 std::ranges::all_of(c.parameters, [&](const ParameterCase& p) {
                                     return find(p) != other.parameters.end();
                                 });
    if (!same_parameters) twin.at("changes").fail("the twin has other parameters");
    if (!std::ranges::equal(c.program, other.program, {}, &Action::kind, &Action::kind))
        twin.at("changes").fail("the twin has another program");
    const auto names = [](const Case& x) {
        std::vector<std::string> all;
        for (const ParameterCase& p : x.parameters) all.push_back(p.name);
        return all;
    };
    const auto unit_sizes = [](const Case& x) {
        std::vector<std::size_t> all;
        for (const UnitCase& unit : x.units) all.push_back(unit.parameters.size());
        return all;
    };
    const bool differs =
        differs_in == "stage"         ? c.stage != other.stage
        : differs_in == "bucket size" ? c.bucket_elements != other.bucket_elements
        : differs_in == "overlap"     ? c.overlap != other.overlap || c.prefetch != other.prefetch
        : differs_in == "grouping"    ? unit_sizes(c) != unit_sizes(other)
        : differs_in == "registration order" ? names(c) != names(other)
        : differs_in == "recomputation"
            ? c.transformer && other.transformer &&
                  c.transformer->blocks_per_checkpoint != other.transformer->blocks_per_checkpoint
        : cut_otherwise ? c.transformer && other.transformer &&
                              c.transformer->tensor_parallel != other.transformer->tensor_parallel
                        : c.surroundings != other.surroundings;
    if (cut_otherwise && c.precision != Precision::fp32)
        twin.at("differs_in").fail("the error of sums in another order is bounded for fp32 alone");
    if (!differs)
        twin.at("changes").fail(fmt::format("the twin does not differ in {}", differs_in));
}

}  // namespace

std::vector<Case> read_family(std::string_view text, const std::string& file) {
    const scenarios::Json document = scenarios::parse_json(text, file);
    const scenarios::JsonReader reader(document, file);
    const std::string family = reader.at("family").text();
    (void)reader.at("purpose").text();

    scenarios::Json common = document;
    common.erase("sweep");
    common.erase("twin");
    std::vector<Axis> axes;
    std::size_t count = 1;
    if (reader.has("sweep")) {
        const scenarios::JsonReader sweep = reader.at("sweep");
        if (!sweep.json().is_object()) sweep.fail("expected an object");
        for (const auto& [key, unused] : sweep.json().items()) {
            axes.push_back(read_axis(key, sweep.at(key)));
            count *= axes.back().values.size();
            if (count > kMostCases) sweep.fail(fmt::format("more than {} cases", kMostCases));
        }
    }
    std::string twin_name;
    scenarios::Json twin_changes;
    if (reader.has("twin")) {
        const scenarios::JsonReader twin = reader.at("twin");
        twin.allow({"differs_in", "changes"});
        // Each has a clause INVARIANT.*, but for the last, which has TENSOR.WHOLE.
        (void)twin.at("differs_in")
            .choice({"stage", "bucket size", "overlap", "grouping", "registration order", "timing",
                     "recomputation", "tensor parallelism"});
        twin_name = twin.at("differs_in").text();
        twin_changes = twin.at("changes").json();
        if (!twin_changes.is_object()) twin.at("changes").fail("expected an object");
    }

    std::vector<Case> cases;
    for (std::size_t number = 0; number < count; ++number) {
        scenarios::Json object = common;
        std::string id = family;
        std::size_t rest = number;
        std::size_t below = count;
        for (const Axis& axis : axes) {
            below /= axis.values.size();
            const std::size_t choice = rest / below;
            rest %= below;
            object[axis.key] = axis.values[choice];
            id += fmt::format("{}{}={}", &axis == &axes.front() ? "/" : ",", axis.key,
                              axis.labels[choice]);
        }
        const std::string where = fmt::format("{} ({})", file, id);
        Case c = read_case(scenarios::JsonReader(object, where));
        c.id = id;
        if (!twin_name.empty()) {
            const scenarios::Json twin_object = merged(object, twin_changes);
            c.twin_of = twin_name;
            c.twin.push_back(read_case(scenarios::JsonReader(twin_object, where + " twin")));
            c.twin.back().id = id + " (twin)";
            check_twin(c, twin_name, reader.at("twin"));
        }
        if (axes.empty() && reader.has("id")) c.id = reader.at("id").text();
        cases.push_back(std::move(c));
    }
    return cases;
}

std::vector<Case> all_cases() {
    std::vector<Case> all;
    for (const FamilyFile& file : family_files())
        for (Case& c : read_family(file.text, std::string(file.name))) all.push_back(std::move(c));
    return all;
}

}  // namespace zeroproof::suites
