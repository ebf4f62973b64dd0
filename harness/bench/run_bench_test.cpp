#include "harness/bench/run_bench.h"

#include <gtest/gtest.h>

#include <mutex>

#include "collectives/thread_world.h"
#include "harness/bench/operation_bench.h"
#include "harness/bench/stage_bench.h"

namespace zeroproof::harness {
namespace {

using collectives::Communicator;
using collectives::Op;
using collectives::Operation;
using collectives::Request;
using collectives::Topology;

Topology nodes(int count, int ranks_per_node) {
    return {.name = "test", .nodes = count, .ranks_per_node = ranks_per_node, .links = {}};
}

constexpr Measuring kQuick{.warm_up = 1, .repeats = 2, .least_seconds = 0};

// Runs on threads. What rank 0 has recorded; what a rank threw fails the test.
BenchRecord run(const BenchPlan& plan, std::size_t* results = nullptr) {
    BenchRecord record;
    collectives::ThreadWorld world(plan.topology.ranks(), std::chrono::hours(1));
    const auto failure = world.run([&](Communicator& communicator) {
        Team team(communicator);
        BenchRecord other;
        run_bench(
            team, plan, team.leads() ? record : other,
            [](std::size_t, std::size_t, const std::string&) {},
            [&] {
                if (results != nullptr) ++*results;
            });
    });
    EXPECT_EQ(failure, nullptr) << failure->message;
    return record;
}

TEST(RunBench, TimesEveryOperationByEveryAlgorithm) {
    BenchPlan plan;
    plan.topology = nodes(2, 2);
    plan.measuring = kQuick;
    plan.type = memory::DType::bf16;
    plan.ops = {Op::broadcast,      Op::reduce,     Op::all_reduce,
                Op::reduce_scatter, Op::all_gather, Op::all_to_all};
    plan.algorithms = {"native", "ring", "recursive", "hierarchical"};
    plan.bytes = {1000, 300'000};
    std::size_t results = 0;
    const BenchRecord record = run(plan, &results);
    // Two sizes: native and three algorithms of three operations, native and one of the others.
    EXPECT_EQ(record.operations.size(), 2u * (3 * 4 + 3 * 2));
    EXPECT_EQ(results, record.operations.size());
    for (const OperationResult& result : record.operations) {
        EXPECT_EQ(result.timing.seconds.size(), 2u);
        EXPECT_GT(result.timing.lowest_seconds(), 0);
        EXPECT_GT(result.checked_elements, 0u);
        EXPECT_EQ(result.sent.has_value(), result.algorithm != "native");
    }
}

TEST(RunBench, CountsWhatTheFormulasGiveForEveryStage) {
    for (const int ranks : {1, 2, 3, 4})
        for (const int micro_steps : {1, 3})
            for (const bool overlap : {true, false}) {
                SCOPED_TRACE(testing::Message() << ranks << " ranks, " << micro_steps
                                                << " micro-steps, overlap " << overlap);
                BenchPlan plan;
                plan.topology = nodes(1, ranks);
                plan.measuring = kQuick;
                plan.algorithms = {"native", "ring"};
                plan.stages = {0, 1, 2, 3};
                plan.parameters = 10'001;  // divides by none of these
                plan.units = 3;
                plan.bucket_elements = 1000;
                plan.micro_steps = micro_steps;
                plan.overlap = overlap;
                const BenchRecord record = run(plan);
                ASSERT_EQ(record.stages.size(), 8u);
                for (const StageResult& stage : record.stages) {
                    for (const VolumeRow& row : stage.volumes)
                        EXPECT_EQ(row.nominal_elements, row.formula_elements);
                    const std::uint64_t phis =
                        stage.stage == 3   ? 3u * static_cast<unsigned>(micro_steps)
                        : stage.stage == 2 ? 1u + static_cast<unsigned>(micro_steps)
                                           : 2u;
                    if (ranks > 1) {
                        EXPECT_GE(stage.nominal_elements, phis * plan.parameters);
                        EXPECT_LT(stage.nominal_elements, phis * (plan.parameters + 12));
                    }
                    EXPECT_NEAR(stage.communication_seconds + stage.computing_seconds,
                                stage.timing.lowest_seconds(), 1e-9);
                }
            }
}

TEST(RunBench, BetweenNodesTwoLevelsSendLess) {
    BenchPlan plan;
    plan.topology = nodes(2, 2);
    plan.measuring = kQuick;
    plan.algorithms = {"ring", "hierarchical"};
    plan.stages = {2};
    plan.parameters = 8000;
    plan.units = 2;
    const BenchRecord record = run(plan);
    ASSERT_EQ(record.stages.size(), 2u);
    // Control traffic, two elements a step, is in what links carry.
    const auto between_nodes = [&](std::size_t i) { return (*record.stages[i].sent)[1]; };
    EXPECT_NEAR(static_cast<double>(between_nodes(0)), 2 * 2 * 3 * 2000, 50);
    EXPECT_NEAR(static_cast<double>(between_nodes(1)), 2 * 4 * 2000, 50);
}

TEST(RunBench, HoldsEveryOtherSizeOutOfTheFit) {
    BenchPlan plan;
    plan.topology = nodes(1, 2);
    plan.measuring = kQuick;
    plan.ops = {Op::all_reduce, Op::reduce_scatter, Op::all_gather};
    plan.algorithms = {"native", "ring"};
    plan.bytes = {1000, 10'000, 100'000, 1'000'000};
    plan.stages = {1};
    plan.parameters = 100'000;
    plan.fit = true;
    const BenchRecord record = run(plan);
    ASSERT_EQ(record.fits.size(), 6u);
    for (const FittedAlgorithm& fit : record.fits) {
        EXPECT_EQ(fit.errors.fitted_sizes, 2u);
        EXPECT_EQ(fit.errors.held_out_sizes, 2u);
        EXPECT_TRUE(fit.latency_s[0]);
        EXPECT_FALSE(fit.latency_s[1]);
    }
    for (const OperationResult& result : record.operations) {
        ASSERT_TRUE(result.prediction);
        EXPECT_EQ(result.prediction->used_for_fit, result.bytes == 1000 || result.bytes == 100'000);
    }
    for (const StageResult& stage : record.stages) EXPECT_TRUE(stage.prediction);
}

std::string refusal(const BenchPlan& plan, int ranks) {
    try {
        check(plan, ranks);
    } catch (const std::invalid_argument& refused) {
        return refused.what();
    }
    return {};
}

TEST(RunBench, RefusesPlansThatMakeNoSense) {
    BenchPlan plan;
    plan.topology = nodes(2, 2);
    plan.algorithms = {"ring"};
    plan.ops = {Op::all_reduce};
    plan.bytes = {1000};
    EXPECT_EQ(refusal(plan, 4), "");
    EXPECT_EQ(refusal(plan, 3),
              "the topology \"test\" has 2 nodes of 2 ranks, 4 in all, but 3 run");
    plan.fit = true;
    EXPECT_NE(refusal(plan, 4).find("a fit takes at least 3 sizes"), std::string::npos);
    plan.fit = false;
    plan.algorithms = {"spiral"};
    EXPECT_EQ(refusal(plan, 4), "there is no algorithm spiral for the operations asked for");
    plan.algorithms = {"halving_doubling"};
    EXPECT_EQ(refusal(plan, 4), "");
    plan.stages = {1};
    plan.parameters = 3;
    EXPECT_NE(refusal(plan, 4).find("not halving_doubling"), std::string::npos);
    plan.algorithms = {"ring"};
    EXPECT_EQ(refusal(plan, 4), "3 parameters do not make 8 units");
}

// Changes one element of what rank 1 receives.
class Damaging : public Communicator {
  public:
    Damaging(Communicator& inner, Op op) : inner_(inner), op_(op) {}
    int rank() const override { return inner_.rank(); }
    std::span<const int> world_ranks() const override { return inner_.world_ranks(); }
    Request start(const Operation& operation) override {
        Request request = inner_.start(operation);
        if (operation.op != op_ || operation.out_elements < 1000 || rank() != 1) return request;
        request.wait();
        memory::store_element(operation.type, operation.output, 999, 17);
        return {};
    }
    std::unique_ptr<Communicator> split(int color, int key) override {
        struct Owning : Damaging {
            Owning(std::unique_ptr<Communicator> group, Op op)
                : Damaging(*group, op), group_(std::move(group)) {}
            std::unique_ptr<Communicator> group_;
        };
        return std::make_unique<Owning>(inner_.split(color, key), op_);
    }

  private:
    Communicator& inner_;
    Op op_;
};

// What all ranks are told, if they are told the same.
std::string told(Op damaged, const std::function<void(Team&)>& body) {
    std::vector<std::string> messages(2);
    collectives::ThreadWorld world(2, std::chrono::hours(1));
    const auto failure = world.run([&](Communicator& communicator) {
        Damaging damaging(communicator, damaged);
        Team team(damaging);
        try {
            body(team);
        } catch (const WrongResult& wrong) {
            messages[static_cast<std::size_t>(team.rank())] = wrong.what();
        }
    });
    EXPECT_EQ(failure, nullptr);
    EXPECT_EQ(messages[0], messages[1]);
    return messages[0];
}

TEST(TimeOperation, TellsEveryRankOfAWrongElement) {
    EXPECT_EQ(told(Op::all_gather,
                   [](Team& team) {
                       time_operation(team, {Op::all_gather, "native", memory::DType::fp32, 16'000},
                                      nodes(1, 2), kQuick);
                   }),
              "rank 1: all_gather of fp32 by native: of what rank 0 gave, element 999 is 17, "
              "expected 24");
}

TEST(TimeStage, TellsEveryRankOfAWrongGradient) {
    EXPECT_NE(told(Op::reduce_scatter,
                   [](Team& team) {
                       time_stage(team, {.stage = 2, .algorithm = "native", .parameters = 10'000},
                                  nodes(1, 2), kQuick);
                   })
                  .find("rank 1: reduced gradient of unit"),
              std::string::npos);
}

TEST(BusLimit, IsTheSlowestLinkForWhatMustCrossIt) {
    Topology topology = nodes(4, 2);
    EXPECT_FALSE(bus_limit_bytes_per_s(Op::all_reduce, topology));
    topology.links[1] = {
        .bandwidth_bytes_per_s = 1e9, .latency_s = {}, .sharing = collectives::Sharing::node};
    // 7/8 of the tensor by the bus formula, 3/4 over each node's link.
    EXPECT_NEAR(*bus_limit_bytes_per_s(Op::all_gather, topology), 1e9 * (7.0 / 8) / (3.0 / 4), 1);
    topology.links[0].bandwidth_bytes_per_s = 0.5e9;
    EXPECT_NEAR(*bus_limit_bytes_per_s(Op::all_gather, topology), 0.5e9, 1);
}

}  // namespace
}  // namespace zeroproof::harness
