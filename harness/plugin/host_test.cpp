#include "harness/plugin/host.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "collectives/thread_world.h"
#include "harness/plugin/case_view.h"
#include "harness/plugin/library.h"

namespace zeroproof::harness {
namespace {

using memory::Category;

// Two units, of which the second uses both parameters.
suites::Case two_units() {
    suites::Case c;
    c.id = "two units";
    c.parameters = {{"a", {2, 3}}, {"b", {4}, 1, false}};
    c.units = {{"first", {0}}, {"second", {1, 0}}};
    c.groups = {{}, {.learning_rate = 0.5, .l2 = true}};
    c.model = suites::Model::echo;
    c.features = {"feature"};
    c.options = {{"option", "true"}};
    c.program = {{suites::ActionKind::micro_step}, {suites::ActionKind::step}};
    return c;
}

TEST(PluginMemory, IsCountedAndReleasedOnce) {
    memory::Space space("here", 1000, memory::Returned::quarantined);
    PluginMemory memory(space);
    void* momentum = memory.allocate(ZEROPROOF_MOMENTUM, 100);
    EXPECT_EQ(memory.allocate(ZEROPROOF_MASTER, 0), nullptr);
    EXPECT_EQ(space.ledger().live_bytes(Category::momentum), 100u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(momentum) % 64, 0u);
    EXPECT_THROW(memory.release(&memory), PluginFault);
    EXPECT_THROW(memory.release(static_cast<char*>(momentum) + 8), PluginFault);
    memory.release(momentum);
    memory.release(nullptr);
    EXPECT_EQ(space.ledger().live_bytes(), 0u);
    EXPECT_THROW(memory.release(momentum), PluginFault);
    EXPECT_THROW(memory.allocate(8, 8), PluginFault);
    EXPECT_THROW(memory.allocate(ZEROPROOF_BUFFER, 1001), memory::OutOfMemory);
}

// Runs `body` on each of two ranks, and returns what the world says of it.
template <typename Body>
std::string on_two_ranks(const suites::Case& c, Body&& body) {
    const ProgramPart part{2, 1, 0, 2, {}, {}, {}};
    std::array<std::unique_ptr<PluginHost>, 2> hosts;
    for (int rank = 0; rank < 2; ++rank)
        hosts[static_cast<std::size_t>(rank)] = std::make_unique<PluginHost>(c, part, rank);
    collectives::ThreadWorld world(2, std::chrono::seconds(20));
    const auto failure = world.run([&](collectives::Communicator& communicator) {
        PluginHost& host = *hosts[static_cast<std::size_t>(communicator.rank())];
        host.open(communicator);
        body(host, communicator.rank());
        host.close();
    });
    return failure ? failure->message : "";
}

TEST(PluginHost, EachOperationIsWhatItIsAndIsCountedByItsKindOfTraffic) {
    const suites::Case c = two_units();
    const std::string failure = on_two_ranks(c, [&](PluginHost& host, int rank) {
        const zeroproof_host* table = host.table();
        const auto operate = [&](std::int32_t op, std::int32_t reduction, std::int32_t peer,
                                 const float* in, float* out, std::size_t count) {
            const zeroproof_operation o{op, ZEROPROOF_FP32, reduction, peer, in, out, count};
            zeroproof_request request = 0;
            ASSERT_EQ(table->start(table, table->parameters, &o, &request), ZEROPROOF_OK);
            ASSERT_EQ(table->wait(table, request), ZEROPROOF_OK);
        };
        host.must("test", [&] {
            const float r = static_cast<float>(rank);
            std::array<float, 4> in{r, r + 10, r + 20, r + 30};
            std::array<float, 4> out{};
            operate(ZEROPROOF_ALL_REDUCE, ZEROPROOF_SUM, -1, in.data(), out.data(), 2);
            EXPECT_EQ(out, (std::array<float, 4>{1, 21, 0, 0}));
            operate(ZEROPROOF_REDUCE_SCATTER, ZEROPROOF_MEAN, -1, in.data(), out.data(), 2);
            EXPECT_EQ(out[0], rank == 0 ? 0.5f : 20.5f);
            operate(ZEROPROOF_ALL_GATHER, ZEROPROOF_NO_REDUCTION, -1, in.data(), out.data(), 2);
            EXPECT_EQ(out, (std::array<float, 4>{0, 10, 1, 11}));
            operate(ZEROPROOF_ALL_TO_ALL, ZEROPROOF_NO_REDUCTION, -1, in.data(), out.data(), 2);
            EXPECT_EQ(out[0], rank == 0 ? 0.0f : 20.0f);
            EXPECT_EQ(out[2], rank == 0 ? 1.0f : 21.0f);
            operate(ZEROPROOF_BROADCAST, ZEROPROOF_NO_REDUCTION, 1, in.data(), out.data(), 1);
            EXPECT_EQ(out[0], 1.0f);
            operate(ZEROPROOF_REDUCE, ZEROPROOF_MAX, 1, in.data(), out.data(), 3);
            EXPECT_EQ(out[2], rank == 1 ? 21.0f : 1.0f);  // there the output stays as it was
            operate(rank == 0 ? ZEROPROOF_SEND : ZEROPROOF_RECEIVE, ZEROPROOF_NO_REDUCTION,
                    1 - rank, in.data(), out.data(), 1);
            EXPECT_EQ(out[0], rank == 1 ? 0.0f : 1.0f);
            return ZEROPROOF_OK;
        });
        for (const collectives::CollectiveRecord& record : host.take_evidence().collectives) {
            EXPECT_EQ(record.traffic, collectives::Traffic::parameter);
            EXPECT_TRUE(record.awaited);
        }
    });
    EXPECT_EQ(failure, "");
}

TEST(PluginHost, PartsOfACommunicatorKeepItsKindAndEndWhenClosed) {
    const suites::Case c = two_units();
    const std::string failure = on_two_ranks(c, [&](PluginHost& host, int rank) {
        const zeroproof_host* table = host.table();
        const auto closed = [&] {
            return host.call("test", [&] {
                zeroproof_communicator part = 1;
                EXPECT_EQ(table->split(table, table->gradients, rank == 0 ? -1 : 0, 0, &part),
                          ZEROPROOF_OK);
                if (rank == 0) {
                    EXPECT_EQ(part, 0u);
                    return table->shape(table, table->gradients, nullptr, nullptr);
                }
                std::int32_t own = -1;
                std::int32_t ranks = -1;
                EXPECT_EQ(table->shape(table, part, &own, &ranks), ZEROPROOF_OK);
                EXPECT_EQ(own, 0);
                EXPECT_EQ(ranks, 1);
                EXPECT_EQ(table->close(table, part), ZEROPROOF_OK);
                return table->shape(table, part, &own, &ranks);
            });
        };
        if (rank == 0)
            EXPECT_EQ(closed(), ZEROPROOF_OK);
        else
            EXPECT_THROW(closed(), PluginFault);
    });
    EXPECT_EQ(failure, "");
}

TEST(PluginHost, AModelsGradientsAreAddedWhereThereIsRoom) {
    suites::Case c = two_units();
    c.parameters[0].usage = suites::Usage::even_ranks;
    const std::string failure = on_two_ranks(c, [&](PluginHost& host, int rank) {
        const zeroproof_host* table = host.table();
        host.begin(0, 0);
        host.enter(memory::Phase::forward);
        host.must("test", [&] {
            std::vector<float> a(6);
            std::vector<std::uint16_t> b(4, 0x3F80);  // ones in bf16
            EXPECT_EQ(table->initial_weights(table, 0, 0, 6, a.data()), ZEROPROOF_OK);
            EXPECT_EQ(double{a[5]}, suites::Gradients::initial_weight(c, 0, 5));
            const zeroproof_tensor weights[] = {{b.data(), ZEROPROOF_BF16},
                                                {a.data(), ZEROPROOF_FP32}};
            std::vector<double> gradient(6, 100);
            const zeroproof_tensor gradients[] = {{nullptr, ZEROPROOF_BF16},
                                                  {gradient.data(), ZEROPROOF_FP64}};
            std::array<std::int32_t, 2> used{7, 7};
            EXPECT_EQ(table->forward(table, 1, weights), ZEROPROOF_OK);
            EXPECT_EQ(table->begin_backward(table), ZEROPROOF_OK);
            EXPECT_EQ(table->backward(table, 1, weights, gradients, 2, used.data()), ZEROPROOF_OK);
            EXPECT_EQ(used[0], 1);
            EXPECT_EQ(used[1], rank == 0 ? 1 : 0);
            const suites::Gradients expected(c, 2);
            for (std::size_t e = 0; e < gradient.size(); ++e)
                EXPECT_EQ(gradient[e], 100 + 2 * expected.value({rank, 0, 1}, 0, e));
            return ZEROPROOF_OK;
        });
        const suites::RankEvidence evidence = host.take_evidence();
        ASSERT_EQ(evidence.echoes.size(), 4u);
        EXPECT_EQ(evidence.echoes[2].weights, std::vector<float>(4, 1));
        EXPECT_TRUE(evidence.echoes[2].backward);
        ASSERT_EQ(evidence.in_flight.size(), 2u);
    });
    EXPECT_EQ(failure, "");
}

TEST(PluginHost, CallsOutsideOfAFunctionAreRefusedAndTold) {
    const suites::Case c = two_units();
    const ProgramPart part{1, 1, 0, 2, {}, {}, {}};
    PluginHost host(c, part, 0);
    (void)take_stray_calls();
    void* memory = nullptr;
    EXPECT_EQ(host.table()->allocate(host.table(), ZEROPROOF_BUFFER, 8, &memory), ZEROPROOF_ERROR);
    EXPECT_NE(take_stray_calls().find("allocate"), std::string::npos);
    EXPECT_EQ(take_stray_calls(), "");
    // After the first mistake the engine can clean up, and nothing else.
    EXPECT_THROW(
        host.call("test",
                  [&] {
                      const zeroproof_host* table = host.table();
                      EXPECT_EQ(table->allocate(table, ZEROPROOF_BUFFER, 8, &memory), ZEROPROOF_OK);
                      EXPECT_EQ(table->wait(table, 1), ZEROPROOF_ERROR);
                      EXPECT_EQ(table->initial_weights(table, 0, 0, 0, nullptr), ZEROPROOF_ERROR);
                      return table->release(table, memory);
                  }),
        PluginFault);
    EXPECT_EQ(host.ledger().live_bytes(), 0u);
}

TEST(CaseView, HoldsTheCase) {
    const suites::Case c = two_units();
    const CaseView view(c, 3);
    const zeroproof_case& seen = *view.get();
    EXPECT_EQ(seen.stage, 3);
    EXPECT_EQ(seen.precision, ZEROPROOF_FP32);
    ASSERT_EQ(seen.parameter_count, 2u);
    EXPECT_STREQ(seen.parameters[0].name, "a");
    EXPECT_EQ(seen.parameters[0].elements, 6u);
    EXPECT_EQ(seen.parameters[0].shape[1], 3u);
    EXPECT_EQ(seen.parameters[1].trainable, 0);
    EXPECT_EQ(seen.units[1].parameters[0], 1u);
    EXPECT_EQ(seen.groups[1].l2, 1);
    EXPECT_STREQ(seen.features[0], "feature");
    EXPECT_STREQ(seen.options[0].value, "true");
}

zeroproof_engine described_by(zeroproof_status (*describe)(zeroproof_description*)) {
    zeroproof_engine engine{};
    engine.describe = describe;
    return engine;
}

TEST(PluginDescription, SaysWhatTheEngineHasAndShows) {
    zeroproof_engine engine = described_by([](zeroproof_description* d) -> zeroproof_status {
        d->name = "mine";
        d->stages = 0b1010;
        d->precisions = 1u << ZEROPROOF_BF16 | 1u << ZEROPROOF_FP16;
        d->hidden = ZEROPROOF_HIDES_TRAFFIC;
        d->skips_unused = 1;
        d->further = R"({"not_promised": {"MEMORY.GROWTH": "it caches"}})";
        return ZEROPROOF_OK;
    });
    engine.evaluate = [](zeroproof_state*) -> zeroproof_status { return ZEROPROOF_OK; };
    const PluginDescription description = describe(engine);
    const auto json = nlohmann::json::parse(description.declaration);
    EXPECT_EQ(json.at("subject"), "mine");
    EXPECT_EQ(json.at("stages"), nlohmann::json({1, 3}));
    EXPECT_EQ(json.at("precisions"), nlohmann::json({"bf16", "fp16"}));
    EXPECT_EQ(json.at("actions"), nlohmann::json({"micro_step", "step", "read", "evaluate"}));
    EXPECT_EQ(json.at("without_gradient"), "skip");
    EXPECT_FALSE(json.contains("control_elements_per_step"));
    EXPECT_EQ(json.at("not_promised").at("MEMORY.GROWTH"), "it caches");
    EXPECT_FALSE(description.observed.has(suites::Observation::collectives));
    EXPECT_FALSE(description.observed.has(suites::Observation::weights));
    EXPECT_TRUE(description.observed.has(suites::Observation::live_bytes));
}

TEST(PluginDescription, ThatCannotBeIsRefused) {
    EXPECT_THROW(describe(described_by(
                     [](zeroproof_description*) -> zeroproof_status { return ZEROPROOF_ERROR; })),
                 UnfitPlugin);
    EXPECT_THROW(describe(described_by([](zeroproof_description* d) -> zeroproof_status {
                     d->name = "\xFF";
                     return ZEROPROOF_OK;
                 })),
                 UnfitPlugin);
    EXPECT_THROW(describe(described_by([](zeroproof_description* d) -> zeroproof_status {
                     d->name = "mine";
                     d->further = R"({"stages": [1]})";
                     return ZEROPROOF_OK;
                 })),
                 UnfitPlugin);
    EXPECT_THROW(describe(described_by([](zeroproof_description* d) -> zeroproof_status {
                     d->name = "mine";
                     d->clip_epsilon = std::numeric_limits<double>::quiet_NaN();
                     return ZEROPROOF_OK;
                 })),
                 UnfitPlugin);
}

}  // namespace
}  // namespace zeroproof::harness
