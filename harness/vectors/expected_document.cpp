#include "harness/vectors/expected_document.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/protocol/safetensors.h"
#include "harness/protocol/whole_file.h"
#include "suites/conformance/case_writer.h"
#include "suites/conformance/comparison.h"
#include "suites/conformance/oracle.h"
#include "suites/conformance/paper_figures.h"

namespace zeroproof::harness {

namespace {

using scenarios::Json;
using suites::ActionKind;
using suites::Bounded;
using suites::Case;
using suites::Expected;
using suites::ExpectedParameter;

bool is_after_step(const Expected& expected) {
    return expected.action >= 0 && expected.kind == ActionKind::step;
}

// Rounded up, so that nothing which the clauses accept lies outside.
float upwards(double bound) {
    if (bound == 0) return 0;
    const auto nearest = static_cast<float>(bound);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return double{nearest} > bound ? nearest : std::nextafter(nearest, kInfinity);
}

// A value in fp32, and how far an fp32 number may be from it.
struct Entry {
    float value = 0;
    float bound = 0;
};

Entry entry_of(Bounded expected) {
    const auto value = static_cast<float>(expected.value);
    return {value, upwards(expected.error + std::abs(expected.value - double{value}))};
}

// Where nothing is expected anything is within the bound.
Entry nothing_expected() {
    return {0, std::numeric_limits<float>::infinity()};
}

// The master rounded to the precision. Rounding keeps the order, so that masters within their bound
// have weights between those of its two ends.
Entry weight_of(Bounded master, memory::DType type) {
    const auto weight = [&](double of) {
        double room = 0;
        memory::store_element(type, &room, 0, double{static_cast<float>(of)});
        return memory::load_element(type, &room, 0);
    };
    const double value = weight(master.value);
    const double below = weight(master.value - master.error);
    const double above = weight(master.value + master.error);
    return {static_cast<float>(value), upwards(std::max(value - below, above - value))};
}

// Tensors "expected/QUANTITY/NAME" and "bound/QUANTITY/NAME", a row for each snapshot.
class Tensors {
  public:
    Tensors(const Case& c, const std::vector<Expected>& expected) : case_(c), expected_(expected) {
        const memory::DType type = weight_type(c.precision);
        for (std::size_t p = 0; p < c.parameters.size(); ++p) {
            add("weights", p, [&](const Expected&, const ExpectedParameter& of, std::size_t e) {
                return weight_of(of.master[e], type);
            });
            if (!c.parameters[p].trainable) continue;  // it has nothing but its weight
            add("master", p, [](const Expected&, const ExpectedParameter& of, std::size_t e) {
                return entry_of(of.master[e]);
            });
            add("momentum", p, [](const Expected&, const ExpectedParameter& of, std::size_t e) {
                return of.trained ? entry_of(of.momentum[e]) : nothing_expected();
            });
            add("variance", p, [](const Expected&, const ExpectedParameter& of, std::size_t e) {
                return of.trained ? entry_of(of.variance[e]) : nothing_expected();
            });
            add("gradient", p,
                [](const Expected& after, const ExpectedParameter& of, std::size_t e) {
                    const bool is_due = is_after_step(after) && !after.skipped && of.trained;
                    return is_due ? entry_of(of.gradient[e]) : nothing_expected();
                });
        }
    }
    void write(const std::filesystem::path& path) const { writer_.write(path); }

  private:
    template <typename EntryAt>
    void add(const char* quantity, std::size_t parameter, EntryAt&& entry_at) {
        std::vector<float>& values = kept_.emplace_back();
        std::vector<float>& bounds = kept_.emplace_back();
        const std::size_t elements = case_.parameters[parameter].elements();
        for (const Expected& after : expected_)
            for (std::size_t e = 0; e < elements; ++e) {
                const Entry entry = entry_at(after, after.parameters[parameter], e);
                values.push_back(entry.value);
                bounds.push_back(entry.bound);
            }
        const std::string name =
            std::string("/") + quantity + "/" + case_.parameters[parameter].name;
        const Shape shape = {expected_.size(), elements};
        writer_.add("expected" + name, shape, std::span(std::as_const(values)));
        writer_.add("bound" + name, shape, std::span(std::as_const(bounds)));
    }

    const Case& case_;
    const std::vector<Expected>& expected_;
    std::deque<std::vector<float>> kept_;  // until they are written
    SafetensorsWriter writer_;
};

// Summing n squares in fp32 rounds n times; a fresh sum begins at zero, and the root rounds too.
double norm_roundoff(const Case& c) {
    std::size_t roundings = 3;
    for (const suites::ParameterCase& parameter : c.parameters) roundings += parameter.elements();
    return static_cast<double>(roundings) * 0x1p-24;
}

Json bounded_to_json(Bounded value) {
    return {{"value", value.value}, {"bound", value.error}};
}

Json snapshot_to_json(const Case& c, const Expected& after) {
    Json json{{"action", after.action},
              {"part", suites::after_reload(c, after.action) ? 1 : 0},
              {"steps_taken", after.steps_taken},
              {"steps_skipped", after.steps_skipped},
              {"loss_scale", after.loss_scale}};
    if (!is_after_step(after)) return json;
    json["skipped"] = after.skipped;
    if (after.skipped) return json;
    const auto summed = [&](Bounded value) {
        value.error += norm_roundoff(c) * value.value;
        return value;
    };
    json["norm"] = bounded_to_json(summed(after.norm));
    const Bounded coefficient = after.clip_coefficient;
    json["clip_coefficient"] =
        bounded_to_json(coefficient.value == 1 ? coefficient : summed(coefficient));
    return json;
}

Json part_to_json(const Case& c, const std::vector<Expected>& expected, bool behind_reload) {
    const int ranks = behind_reload && c.resume_ranks > 0 ? c.resume_ranks : c.ranks;
    const int stage = behind_reload && c.resume_stage >= 0 ? c.resume_stage : c.stage;
    Json json{{"ranks", ranks}, {"stage", stage}, {"bytes_at_rest", Json::object()}};
    const memory::BytesByCategory bytes = suites::paper_bytes_at_rest(c, stage, ranks);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        json["bytes_at_rest"][std::string(name_of(static_cast<memory::Category>(i)))] = bytes[i];
    json["volumes"] = Json::array();
    for (const suites::PaperVolume& volume : suites::paper_volumes(c, behind_reload, expected))
        json["volumes"].push_back({{"action", volume.action},
                                   {"phase", name_of(volume.phase)},
                                   {"traffic", name_of(volume.traffic)},
                                   {"elements", volume.elements}});
    return json;
}

}  // namespace

void write_expected(const std::filesystem::path& folder, const std::string& name, const Case& c) {
    const std::vector<Expected> expected = suites::expect(c);
    const std::string tensors = name + ".safetensors";
    Tensors(c, expected).write(folder / tensors);

    Json json{{"schema", kExpectedSchema}, {"id", c.id}, {"tensors", tensors}};
    json["snapshots"] = Json::array();
    for (const Expected& after : expected) json["snapshots"].push_back(snapshot_to_json(c, after));
    json["parts"] = Json::array();
    for (const bool behind_reload : {false, true})
        if (!behind_reload || c.has_reload())
            json["parts"].push_back(part_to_json(c, expected, behind_reload));
    WholeFile file(folder / (name + ".json"));
    file.write(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    file.finish();
}

}  // namespace zeroproof::harness
