#include "collectives/algorithms/algorithm_communicator.h"

#include <numeric>

#include "collectives/test_support.h"

namespace zeroproof::collectives {
namespace {

void run_ring(int ranks, int ranks_per_node, const std::function<void(Communicator&)>& body,
              LinkElements* sent_by_first = nullptr) {
    run_ranks(ranks, [&](Communicator& world) {
        Progress progress;
        LinkElements sent{};
        {
            AlgorithmCommunicator group(std::make_unique<Borrowed>(world),
                                        find_algorithm_set("ring"), ranks_per_node, progress, sent);
            body(group);
        }
        if (sent_by_first != nullptr && world.rank() == 0) *sent_by_first = sent;
    });
}

TEST(AlgorithmCommunicator, CarriesOutSeveralOperationsWaitedForInAnyOrder) {
    LinkElements sent{};
    run_ring(
        4, 2,
        [](Communicator& group) {
            std::vector<float> first(8, 1.0f), second(8, 2.0f);
            Request a =
                group.all_reduce(bytes(first), bytes(first), 8, DType::fp32, Reduction::sum);
            Request b =
                group.all_reduce(bytes(second), bytes(second), 8, DType::fp32, Reduction::mean);
            if (group.rank() % 2 == 0) {
                b.wait();
                a.wait();
            } else {
                a.wait();
                b.wait();
            }
            EXPECT_EQ(first, std::vector<float>(8, 4.0f));
            EXPECT_EQ(second, std::vector<float>(8, 2.0f));
        },
        &sent);
    // Twice: 2 (N - 1) messages of 2 elements to the rank beside it on its node.
    EXPECT_EQ(sent, (LinkElements{24, 0}));
}

TEST(AlgorithmCommunicator, SendsAndReceivesAroundARing) {
    run_ring(3, 3, [](Communicator& group) {
        const std::vector<std::int32_t> mine(5, group.rank());
        std::vector<std::int32_t> theirs(5, -1);
        const int next = (group.rank() + 1) % 3;
        const int last = (group.rank() + 2) % 3;
        Request sent = group.start(
            {Op::send, DType::int32, Reduction::none, bytes(mine), nullptr, 5, 0, next});
        group
            .start({Op::receive, DType::int32, Reduction::none, nullptr, bytes(theirs), 0, 5, last})
            .wait();
        sent.wait();
        EXPECT_EQ(theirs, std::vector<std::int32_t>(5, last));
    });
}

TEST(AlgorithmCommunicator, SplitsIntoGroupsOnTheirNodes) {
    run_ring(4, 2, [](Communicator& group) {
        const auto node = group.split(group.rank() / 2, group.rank());
        std::vector<std::int32_t> all(2, -1);
        const std::vector<std::int32_t> mine = {group.rank()};
        node->all_gather(bytes(mine), bytes(all), 1, DType::int32).wait();
        const std::int32_t first = group.rank() / 2 * 2;
        EXPECT_EQ(all, (std::vector<std::int32_t>{first, first + 1}));
        EXPECT_EQ(group.split(-1, 0), nullptr);
    });
}

TEST(AlgorithmCommunicator, RefusesGroupsOfUnequalNodes) {
    run_ring(4, 2, [](Communicator& group) {
        // All ranks take part in the split; those of the uneven group are told.
        if (group.rank() < 3) {
            EXPECT_THROW(group.split(0, group.rank()), std::invalid_argument);
        } else {
            EXPECT_NE(group.split(1, 0), nullptr);
        }
    });
}

TEST(AlgorithmCommunicator, ChecksOperationsWhenTheyStart) {
    run_ring(2, 2, [](Communicator& group) {
        std::vector<float> values(4);
        EXPECT_THROW(
            group.all_reduce(bytes(values), bytes(values) + 4, 2, DType::fp32, Reduction::sum),
            BadOperation);
    });
}

TEST(Progress, DoesJobsInTheirOrderWhileTheirOwnerGoesOn) {
    Progress progress;
    std::vector<int> done;
    std::vector<Request> requests;
    for (int i = 0; i < 100; ++i) requests.push_back(progress.begin([&, i] { done.push_back(i); }));
    progress.drain();
    std::vector<int> expected(100);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(done, expected);
}

TEST(Progress, AfterAFailureNothingMoreIsDone) {
    Progress progress;
    bool reached = false;
    Request bad = progress.begin([] { throw std::runtime_error("the link broke"); });
    Request later = progress.begin([&] { reached = true; });
    EXPECT_THROW(later.wait(), std::runtime_error);
    EXPECT_THROW(bad.wait(), std::runtime_error);
    EXPECT_FALSE(reached);
}

}  // namespace
}  // namespace zeroproof::collectives
