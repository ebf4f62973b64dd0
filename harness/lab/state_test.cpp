#include "harness/lab/state.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "harness/lab/plan.h"
#include "harness/lab/take_down.h"
#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

class LabStates : public testing::Test {
  protected:
    std::filesystem::path labs() const { return folder_.path() / "labs"; }
    TemporaryFolder folder_;
};

TEST_F(LabStates, AreReadAsTheyWereWritten) {
    LabState state = LabState::create(labs(), "a");
    state.about_to_make("a-n0");
    state.made("a-n0", 4026531840);
    state.about_to_make("a-n1");
    const std::vector<LabState> all = LabState::load_all(labs());
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].name(), "a");
    EXPECT_EQ(all[0].owner(), identity_of(getpid()));
    EXPECT_TRUE(all[0].is_owner_alive());
    ASSERT_EQ(all[0].namespaces().size(), 2U);
    EXPECT_EQ(all[0].namespaces()[0].name, "a-n0");
    EXPECT_EQ(all[0].namespaces()[0].inode, 4026531840U);
    EXPECT_EQ(all[0].namespaces()[1].name, "a-n1");
    EXPECT_FALSE(all[0].namespaces()[1].inode);
    state.remove();
    EXPECT_TRUE(LabState::load_all(labs()).empty());
}

TEST_F(LabStates, AreNotSharedByTwoLabs) {
    const LabState first = LabState::create(labs(), "a");
    EXPECT_THROW(LabState::create(labs(), "a"), LabRefused);
    EXPECT_EQ(LabState::load_all(labs()).size(), 1U);
}

TEST_F(LabStates, AreLeftOverWhenTheirOwnerHasEnded) {
    const pid_t child = fork();
    if (child == 0) {
        LabState::create(labs(), "a");
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(LabState::load_all(labs()).at(0).is_owner_alive());
}

TEST_F(LabStates, KnowAnotherProcessOfTheSameNumber) {
    LabState state = LabState::create(labs(), "a");
    std::ofstream(state.files().owner()) << getpid() << " 1\n";
    EXPECT_FALSE(LabState::load_all(labs()).at(0).is_owner_alive());
}

TEST_F(LabStates, WithoutAnythingMadeAreTakenDownByTheirFolder) {
    LabState state = LabState::create(labs(), "a");
    state.about_to_make("zeroproof-test-that-was-never-made");
    EXPECT_EQ(remains_of(state), std::vector<std::string>{state.files().folder().string()});
    EXPECT_TRUE(take_down(state).empty());
    EXPECT_FALSE(std::filesystem::exists(state.files().folder()));
}

}  // namespace
}  // namespace zeroproof::harness
