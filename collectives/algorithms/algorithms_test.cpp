#include "collectives/algorithms/algorithms.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "collectives/algorithms/carry_out.h"
#include "collectives/test_support.h"

namespace zeroproof::collectives {
namespace {

struct Cluster {
    int ranks;
    int ranks_per_node;
};
constexpr Cluster kClusters[] = {{1, 1}, {2, 2},   {3, 3}, {4, 4}, {5, 5}, {6, 6}, {7, 7},
                                 {8, 8}, {12, 12}, {4, 2}, {6, 3}, {6, 2}, {8, 1}, {12, 4}};

std::string name_of(const Algorithm& algorithm, const Cluster& cluster) {
    return fmt::format("{} {} on {}x{}", algorithm.name, collectives::name_of(algorithm.op),
                       cluster.ranks / cluster.ranks_per_node, cluster.ranks_per_node);
}

// The tensor whose parts are `count` elements where the operation asks for equal ones.
Shape shape_for(const Algorithm& algorithm, const Cluster& cluster, std::size_t count) {
    const bool equal_parts = algorithm.op == Op::reduce_scatter || algorithm.op == Op::all_gather ||
                             algorithm.op == Op::all_to_all;
    return {.ranks = cluster.ranks,
            .ranks_per_node = cluster.ranks_per_node,
            .root = cluster.ranks - 1,
            .elements = equal_parts ? count * static_cast<std::size_t>(cluster.ranks) : count};
}

void for_each_algorithm(
    const std::function<void(const Algorithm& algorithm, const Cluster& cluster)>& use) {
    for (const Algorithm& algorithm : algorithms())
        for (const Cluster& cluster : kClusters) {
            SCOPED_TRACE(name_of(algorithm, cluster));
            use(algorithm, cluster);
        }
}

TEST(Schedules, EverySendHasItsReceiveInTheSameRound) {
    for_each_algorithm([](const Algorithm& algorithm, const Cluster& cluster) {
        const Shape shape = shape_for(algorithm, cluster, 5);
        // By round, sender and receiver: the elements of each message, in order.
        using Messages = std::map<std::tuple<std::size_t, int, int>, std::vector<std::size_t>>;
        Messages sent, received;
        std::size_t rounds = 0;
        for (int rank = 0; rank < shape.ranks; ++rank) {
            const Schedule schedule = algorithm.schedule(shape, rank);
            if (rank == 0) rounds = schedule.size();
            EXPECT_EQ(schedule.size(), rounds) << "rank " << rank;
            for (std::size_t r = 0; r < schedule.size(); ++r)
                for (const Message& message : schedule[r]) {
                    EXPECT_NE(message.peer, rank);
                    EXPECT_GT(message.range.elements, 0u);
                    EXPECT_LE(message.range.begin + message.range.elements, shape.elements);
                    if (message.kind == Message::Kind::send)
                        sent[{r, rank, message.peer}].push_back(message.range.elements);
                    else
                        received[{r, message.peer, rank}].push_back(message.range.elements);
                }
        }
        EXPECT_EQ(sent, received);
    });
}

// The backend's own operation says what must come out.
TEST(Algorithms, DeliverWhatTheBackendDelivers) {
    for_each_algorithm([](const Algorithm& algorithm, const Cluster& cluster) {
        for (const std::size_t count : {1u, 7u, 70'001u})
            for (const bool in_place : {false, true}) {
                if (in_place && algorithm.op == Op::all_to_all) continue;
                // Several pieces to a message: once, as it moves most.
                if (count > 7 && (in_place || cluster.ranks > 4)) continue;
                SCOPED_TRACE(fmt::format("{} elements, in place {}", count, in_place));
                const Shape shape = shape_for(algorithm, cluster, count);
                LinkElements all_sent{};
                std::mutex mutex;
                run_ranks(cluster.ranks, [&](Communicator& group) {
                    const auto rank = static_cast<std::size_t>(group.rank());
                    const bool is_root = group.rank() == shape.root;
                    const Range own = shape.part(group.rank());
                    Operation operation{.op = algorithm.op, .type = DType::int32};
                    operation.in_elements = algorithm.op == Op::all_gather ? count : shape.elements;
                    operation.out_elements = algorithm.op == Op::reduce_scatter ? count
                                             : algorithm.op == Op::reduce && !is_root
                                                 ? 0
                                                 : shape.elements;
                    if (algorithm.op == Op::reduce || algorithm.op == Op::all_reduce ||
                        algorithm.op == Op::reduce_scatter)
                        operation.reduction = Reduction::mean;
                    if (algorithm.op == Op::broadcast || algorithm.op == Op::reduce)
                        operation.peer = shape.root;
                    const auto run = [&](bool by_algorithm) {
                        std::vector<std::int32_t> memory(2 * shape.elements, -1);
                        std::int32_t* input = memory.data();
                        std::int32_t* output = input + shape.elements;
                        if (in_place) {
                            output = input;
                            if (algorithm.op == Op::reduce_scatter) output = input + own.begin;
                            if (algorithm.op == Op::all_gather) input = output + own.begin;
                        }
                        for (std::size_t i = 0; i < operation.in_elements; ++i)
                            input[i] = static_cast<std::int32_t>(7 * i + 1000 * rank + 3);
                        const std::vector<std::int32_t> before(input,
                                                               input + operation.in_elements);
                        operation.input = reinterpret_cast<const std::byte*>(input);
                        operation.output = reinterpret_cast<std::byte*>(output);
                        if (by_algorithm) {
                            Workspace workspace;
                            LinkElements sent{};
                            carry_out(group, operation, algorithm, cluster.ranks_per_node,
                                      workspace, sent);
                            const std::lock_guard lock(mutex);
                            for (std::size_t link = 0; link < kLinkClasses; ++link)
                                all_sent[link] += sent[link];
                            if (!in_place) {
                                EXPECT_TRUE(std::ranges::equal(
                                    before, std::span(input, operation.in_elements)))
                                    << "the input was changed";
                            }
                        } else {
                            group.start(operation).wait();
                        }
                        return std::vector<std::int32_t>(output, output + operation.out_elements);
                    };
                    EXPECT_EQ(run(true), run(false)) << "rank " << rank;
                });
                EXPECT_EQ(all_sent, sent_elements(algorithm, shape));
            }
    });
}

LinkElements sent(std::string_view name, Op op, const Cluster& cluster, std::size_t count) {
    const Algorithm* algorithm = find_algorithm(name, op);
    return sent_elements(*algorithm, shape_for(*algorithm, cluster, count));
}

// Closed forms, of A nodes of L ranks, N = A L, and parts of c elements: P = N c.
TEST(Volumes, OfRingsAreThoseOfTheirEdges) {
    for (const Cluster& cluster : kClusters) {
        const auto n = static_cast<std::uint64_t>(cluster.ranks);
        const auto a = n / static_cast<std::uint64_t>(cluster.ranks_per_node);
        // Each of N edges carries N - 1 parts; A of them join nodes, if there are several.
        const std::uint64_t crossing = a > 1 ? a : 0;
        const LinkElements expected = {(n - crossing) * (n - 1) * 10, crossing * (n - 1) * 10};
        EXPECT_EQ(sent("ring", Op::reduce_scatter, cluster, 10), expected);
        EXPECT_EQ(sent("ring", Op::all_gather, cluster, 10), expected);
        const LinkElements twice = {2 * expected[0], 2 * expected[1]};
        EXPECT_EQ(sent("ring", Op::all_reduce, cluster, 10 * n), twice);
    }
}

TEST(Volumes, OfHierarchicalOnesAreThoseOfTheirLevels) {
    for (const Cluster& cluster : kClusters) {
        const auto n = static_cast<std::uint64_t>(cluster.ranks);
        const auto l = static_cast<std::uint64_t>(cluster.ranks_per_node);
        const std::uint64_t a = n / l;
        // P (L - 1) / L for each rank within its node, P (A - 1) / N between nodes.
        const LinkElements expected = {n * a * (l - 1) * 10, n * (a - 1) * 10};
        EXPECT_EQ(sent("hierarchical", Op::reduce_scatter, cluster, 10), expected);
        EXPECT_EQ(sent("hierarchical", Op::all_gather, cluster, 10), expected);
        const LinkElements twice = {2 * expected[0], 2 * expected[1]};
        EXPECT_EQ(sent("hierarchical", Op::all_reduce, cluster, 10 * n), twice);
    }
}

TEST(Volumes, OfRecursiveOnesAreLeastForPowersOfTwo) {
    for (const Cluster& cluster : kClusters) {
        const auto n = static_cast<std::uint64_t>(cluster.ranks);
        if ((n & (n - 1)) != 0) continue;
        const std::uint64_t a = n / static_cast<std::uint64_t>(cluster.ranks_per_node);
        // Of what each rank sends, (A - 1) / A of the tensor goes to other nodes.
        const std::uint64_t total = n * (n - 1) * 10;
        const std::uint64_t crossing = n * n / a * (a - 1) * 10;
        const LinkElements expected = {total - crossing, crossing};
        EXPECT_EQ(sent("recursive_halving", Op::reduce_scatter, cluster, 10), expected);
        EXPECT_EQ(sent("recursive_doubling", Op::all_gather, cluster, 10), expected);
        const LinkElements twice = {2 * expected[0], 2 * expected[1]};
        EXPECT_EQ(sent("halving_doubling", Op::all_reduce, cluster, 10 * n), twice);
    }
}

TEST(Volumes, OfTreesAreOneTensorForEachOtherRank) {
    for (const Cluster& cluster : kClusters)
        for (const auto& [name, op] :
             {std::pair{"binomial", Op::broadcast}, std::pair{"binomial", Op::reduce}}) {
            const LinkElements elements = sent(name, op, cluster, 10);
            EXPECT_EQ(elements[0] + elements[1], 10u * static_cast<unsigned>(cluster.ranks - 1));
        }
}

TEST(AlgorithmSets, HaveAnAlgorithmForEachCollective) {
    for (const AlgorithmSet& set : algorithm_sets())
        for (const Op op : kCollectiveOps) EXPECT_EQ(set.for_op(op).op, op) << set.name;
    EXPECT_EQ(find_algorithm_set("spiral"), nullptr);
    EXPECT_EQ(find_algorithm("ring", Op::broadcast), nullptr);
}

}  // namespace
}  // namespace zeroproof::collectives
