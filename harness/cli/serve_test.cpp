// The reference behind the protocol is the reference.
#include "harness/cli/serve.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "harness/protocol/evidence_comparison.h"
#include "harness/protocol/evidence_document.h"
#include "harness/subjects/reference_subject.h"
#include "harness/temporary_folder.h"
#include "harness/version.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/family.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;
using suites::Case;

// Of every family the first case of each stage on two or three ranks; of those on more alone, the
// first.
std::vector<Case> some_of_every_family() {
    const std::vector<Case> all = suites::all_cases();
    std::set<std::pair<std::string, int>> seen;
    std::set<std::string> families;
    std::vector<Case> chosen;
    for (const bool small : {true, false})
        for (const Case& c : all) {
            const int ranks = std::max(c.ranks, c.resume_ranks);
            if (c.transport || c.transformer ||
                (small ? ranks < 2 || ranks > 3 : families.contains(c.family)))
                continue;
            families.insert(c.family);
            if (seen.insert({c.family, c.stage}).second) chosen.push_back(c);
        }
    return chosen;
}

// Parts of all cases that run on as many ranks, in one launch.
struct Launch {
    fs::path cases;
    fs::path results;
    std::vector<PartOfCase> parts;
};

TEST(Serve, EvidenceThroughFilesIsThatOfTheProcess) {
    const TemporaryFolder folder;
    const std::vector<Case> cases = some_of_every_family();
    std::map<std::pair<std::size_t, int>, Launch> launches;  // by part of the program and ranks
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const fs::path saved = folder.path() / ("saved-" + std::to_string(i));
        fs::create_directory(saved);
        const auto parts = parts_of(cases[i], saved);
        for (std::size_t p = 0; p < parts.size(); ++p) {
            Launch& launch = launches[{p, parts[p].ranks}];
            launch.parts.push_back({&cases[i], parts[p], launch.parts.size()});
        }
    }
    std::map<const Case*, std::vector<std::vector<RankResult>>> seen;  // by part and rank
    for (auto& [key, launch] : launches) {
        const auto& [part_number, ranks] = key;
        const fs::path own =
            folder.path() / (std::to_string(part_number) + "-" + std::to_string(ranks));
        launch.cases = own / "cases";
        launch.results = own / "results";
        fs::create_directories(launch.cases);
        fs::create_directories(launch.results);
        write_cases(launch.cases, ranks, launch.parts);
        EXPECT_FALSE(read_ready(launch.results, 0).has_value());
        ASSERT_EQ(serve("reference", launch.cases, launch.results), 0);
        for (int rank = 0; rank < ranks; ++rank) {
            const auto ready = read_ready(launch.results, rank);
            ASSERT_TRUE(ready.has_value());
            EXPECT_EQ(ready->subject, "reference");
            EXPECT_EQ(ready->version, kVersion);
        }
        for (const PartOfCase& part : launch.parts) {
            auto& by_rank = seen[part.c].emplace_back();
            for (int rank = 0; rank < ranks; ++rank) {
                EXPECT_TRUE(has_finished(launch.results, part, rank));
                by_rank.push_back(read_evidence(launch.results, part, rank));
            }
        }
    }
    const auto reference = make_reference_subject();
    for (const Case& c : cases) {
        SCOPED_TRACE(c.id);
        const suites::Evidence expected = reference->run(c, std::chrono::seconds(60));
        const auto& parts = seen[&c];
        for (const RankResult& result : parts.front()) {
            EXPECT_EQ(result.status, expected.status);
            EXPECT_EQ(result.message, expected.message);
        }
        if (expected.status != suites::RunStatus::completed) continue;
        ASSERT_EQ(parts.size(), expected.segments.size());
        for (std::size_t p = 0; p < parts.size(); ++p) {
            ASSERT_EQ(parts[p].size(), expected.segments[p].by_rank.size());
            for (std::size_t rank = 0; rank < parts[p].size(); ++rank) {
                SCOPED_TRACE(testing::Message() << "part " << p << ", rank " << rank);
                EXPECT_EQ(parts[p][rank].status, suites::RunStatus::completed);
                expect_same(parts[p][rank].evidence, expected.segments[p].by_rank[rank]);
            }
        }
        if (testing::Test::HasFailure()) return;
    }
}

TEST(Serve, KnowsTheReferenceAlone) {
    EXPECT_THROW(serve("another", "nowhere", "nowhere"), scenarios::BadInput);
    EXPECT_THROW(serve("reference", "nowhere", "nowhere"), scenarios::BadInput);
}

}  // namespace
}  // namespace zeroproof::harness
