// A case survives being written and read again.
#include "suites/conformance/case_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>

#include "suites/conformance/family.h"

namespace zeroproof::suites {
namespace {

auto fields(const ParameterCase& p) {
    return std::tie(p.name, p.shape, p.group, p.trainable, p.usage, p.gradient_exponent);
}
auto fields(const UnitCase& u) {
    return std::tie(u.name, u.parameters);
}
auto fields(const GroupCase& g) {
    return std::tie(g.learning_rate, g.beta1, g.beta2, g.epsilon, g.weight_decay, g.l2);
}
auto fields(const LossScaleCase& s) {
    return std::tie(s.initial, s.factor, s.growth_interval, s.hysteresis, s.minimum);
}
auto fields(const TransportCase& t) {
    return std::tie(t.type, t.count, t.misalignment_bytes, t.in_place);
}
auto fields(const TransformerCase& t) {
    return std::tie(t.model.family, t.model.layers, t.model.hidden, t.model.heads, t.model.kv_heads,
                    t.model.feed_forward, t.model.vocabulary, t.model.sequence, t.model.dropout,
                    t.samples, t.tensor_parallel, t.blocks_per_checkpoint, t.partition_checkpoints,
                    t.offload_checkpoints, t.contiguous_checkpoints);
}
auto fields(const Unused& u) {
    return std::tie(u.parameter, u.rank);
}
auto fields(const Case& c) {
    return std::tie(c.family, c.id, c.stage, c.ranks, c.precision, c.micro_steps, c.bucket_elements,
                    c.overlap, c.prefetch, c.clip_norm, c.features, c.options, c.model, c.gradients,
                    c.surroundings, c.resume_ranks, c.resume_stage, c.seed, c.measured);
}

// Of a list, each by its fields.
template <typename Item>
void expect_same(const std::vector<Item>& a, const std::vector<Item>& b, const char* what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (std::size_t i = 0; i < a.size(); ++i)
        EXPECT_TRUE(fields(a[i]) == fields(b[i])) << what << " " << i;
}

// Where a kind has no parameter, its value means nothing.
bool names_a_parameter(ActionKind kind) {
    return kind == ActionKind::scale_gradient || kind == ActionKind::scale_weight ||
           kind == ActionKind::freeze || kind == ActionKind::unfreeze;
}

void expect_same(const Case& a, const Case& b) {
    SCOPED_TRACE(a.id);
    EXPECT_TRUE(fields(a) == fields(b));
    EXPECT_TRUE(fields(a.loss_scale) == fields(b.loss_scale));
    expect_same(a.parameters, b.parameters, "parameter");
    expect_same(a.units, b.units, "unit");
    expect_same(a.groups, b.groups, "group");
    ASSERT_EQ(a.program.size(), b.program.size());
    for (std::size_t i = 0; i < a.program.size(); ++i) {
        const Action& x = a.program[i];
        const Action& y = b.program[i];
        EXPECT_TRUE(std::tie(x.kind, x.group, x.value, x.by_model) ==
                    std::tie(y.kind, y.group, y.value, y.by_model))
            << "action " << i;
        EXPECT_TRUE(!names_a_parameter(x.kind) || x.parameter == y.parameter) << "action " << i;
        expect_same(x.unused, y.unused, "unused");
    }
    ASSERT_EQ(a.injections.size(), b.injections.size());
    for (std::size_t i = 0; i < a.injections.size(); ++i) {
        const Injection& x = a.injections[i];
        const Injection& y = b.injections[i];
        EXPECT_TRUE(std::tie(x.micro_step, x.rank, x.parameter, x.element) ==
                    std::tie(y.micro_step, y.rank, y.parameter, y.element));
        EXPECT_TRUE(x.value == y.value || (std::isnan(x.value) && std::isnan(y.value)));
    }
    ASSERT_EQ(a.transport.has_value(), b.transport.has_value());
    EXPECT_TRUE(!a.transport || fields(*a.transport) == fields(*b.transport));
    ASSERT_EQ(a.transformer.has_value(), b.transformer.has_value());
    EXPECT_TRUE(!a.transformer || fields(*a.transformer) == fields(*b.transformer));
}

void expect_round_trip(const Case& c) {
    const std::vector<Case> again = read_family(case_to_json(c).dump(), "again.json");
    ASSERT_EQ(again.size(), 1u);
    expect_same(c, again.front());
}

TEST(CaseWriter, EveryBuiltInCaseAndTwinIsReadBackEqual) {
    for (const Case& c : all_cases()) {
        expect_round_trip(c);
        for (const Case& twin : c.twin) expect_round_trip(twin);
        if (HasFailure()) return;
    }
}

constexpr const char* kEverything = R"({
    "family": "f", "purpose": "p", "id": "f/by hand", "stage": 3, "ranks": 3,
    "precision": "fp16", "micro_steps": 2, "bucket_elements": 12, "overlap": false,
    "prefetch": false, "clip_norm": 0.5, "seed": 9223372036854775807, "measured": true,
    "loss_scale": {"initial": 64, "factor": 4, "growth_interval": 2, "hysteresis": 3,
                   "minimum": 8},
    "groups": [{"learning_rate": 0.5, "beta1": 0, "decay": "l2"},
               {"weight_decay": 0.0625, "epsilon": 1.1754943508222875e-38}],
    "parameters": [
        {"name": "a \"b\"\\\n\u00e9/", "shape": ["2N+1", 2], "group": 1, "usage": "alternating"},
        {"name": "scalar", "shape": [], "gradient_exponent": -2},
        {"name": "empty", "shape": [0, 16777216], "trainable": false, "usage": "never"}],
    "features": ["tensor parallel"],
    "options": {"depth": {"a": [1, 2.5, null, "x"]}, "on": true, "mode": "fast"},
    "model": "echo", "surroundings": "hostile", "resume_ranks": 2, "resume_stage": 0,
    "program": [
        "micro_step", {"action": "zero_grad", "by": "model"},
        {"action": "micro_step", "unused": [{"parameter": "scalar", "rank": 1},
                                            {"parameter": "empty"}]},
        "evaluate", "micro_step", {"action": "scale_gradient", "parameter": "scalar",
                                   "factor": -0.25},
        {"action": "clip", "norm": 0.1}, "step", "zero_grad", "read", "save",
        {"action": "scale_weight", "parameter": "scalar", "factor": 128}, "load", "reload",
        {"action": "freeze", "parameter": "scalar"}, {"action": "unfreeze", "parameter": "scalar"},
        {"action": "add_group", "group": 1}, {"action": "rate", "group": 1, "learning_rate": 0.125},
        "window"],
    "inject": [
        {"micro_step": 0, "rank": 0, "parameter": "scalar", "element": 0, "value": "inf"},
        {"micro_step": 4, "rank": -1, "parameter": "scalar", "element": 0, "value": "-inf"},
        {"micro_step": 1, "rank": 1, "parameter": "a \"b\"\\\n\u00e9/", "element": 13,
         "value": "nan"}])";

TEST(CaseWriter, EveryKeyAndEveryKindOfActionIsReadBackEqual) {
    const char* const ways[] = {
        "",
        R"(, "one_unit": true)",
        R"(, "reverse_parameters": true)",
        R"(, "one_unit": true, "reverse_parameters": true)",
        R"(, "units": [["scalar"], ["empty", "scalar"], []])",
        R"(, "units": [["scalar"], ["empty", "scalar"], []], "reverse_parameters": true)",
        R"(, "units": [])"};
    for (const char* units : ways) {
        const std::vector<Case> cases = read_family(std::string(kEverything) + units + "}", "f");
        ASSERT_EQ(cases.size(), 1u);
        for (std::size_t kind = 0; kind < kActionKinds; ++kind)
            EXPECT_TRUE(cases[0].has(static_cast<ActionKind>(kind))) << kind;
        expect_round_trip(cases[0]);
    }
}

TEST(CaseWriter, ATransportTestIsReadBackEqual) {
    expect_round_trip(read_family(R"({"family": "t", "purpose": "p", "ranks": 3, "seed": 7,
                        "transport": {"type": "bf16", "count": 5, "misalignment_bytes": 3,
                                      "in_place": true}})",
                                  "t.json")
                          .front());
}

TEST(CaseWriter, NumbersThatJsonLacksAreTexts) {
    EXPECT_EQ(number_to_json(INFINITY), "inf");
    EXPECT_EQ(number_to_json(-INFINITY), "-inf");
    EXPECT_EQ(number_to_json(NAN), "nan");
    EXPECT_EQ(number_to_json(0x1.fffffffffffffp-1).dump(), "0.9999999999999999");
}

}  // namespace
}  // namespace zeroproof::suites
