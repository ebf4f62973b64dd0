// Labs as they are on a machine that permits them; elsewhere skipped, with the reason.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "harness/bench/bench_json.h"
#include "harness/lab/lab_files.h"
#include "harness/lab/requirements.h"
#include "harness/process/child.h"
#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Lab : public testing::Test {
  protected:
    void SetUp() override {
        try {
            require_permission();
            require_programs(
                plan_lab("t", lab_cluster(load_cluster("lab-2x2-1g"), {}), Subnet{{10, 1, 2}}));
        } catch (const LabRefused& refused) {
            GTEST_SKIP() << refused.what();
        }
    }
    void TearDown() override {
        if (running_ > 0) {
            kill(running_, SIGKILL);
            waitpid(running_, nullptr, 0);
        }
    }

    std::vector<std::string> words(const std::vector<std::string>& lab,
                                   const std::vector<std::string>& command) const {
        std::vector<std::string> all = {ZEROPROOF_PROGRAM, "lab", "run", "--name", name_};
        all.insert(all.end(), lab.begin(), lab.end());
        all.emplace_back("--");
        all.insert(all.end(), command.begin(), command.end());
        return all;
    }
    // The exit code.
    int run(const std::vector<std::string>& arguments) {
        const ChildEnd end = run_child(arguments, folder_.path(), output_file(), 100s);
        return end.how == ChildEnd::How::exited ? end.code : -1;
    }
    int run_lab(const std::vector<std::string>& lab, const std::vector<std::string>& command) {
        return run(words(lab, command));
    }
    // A lab whose ranks sleep; `running_` is its process.
    void start_sleeping_lab() {
        const fs::path ready = folder_.path() / "ready";
        const std::vector<std::string> arguments = words(
            {"lab-2x2-1g"}, {"sh", "-c", fmt::format("touch {}; sleep 1000", ready.string())});
        running_ = fork();
        if (running_ == 0) {
            std::vector<char*> argv;
            for (const std::string& word : arguments)
                argv.push_back(const_cast<char*>(word.c_str()));
            argv.push_back(nullptr);
            execv(argv[0], argv.data());
            _exit(127);
        }
        for (const auto late = std::chrono::steady_clock::now() + 60s; !fs::exists(ready);) {
            ASSERT_LT(std::chrono::steady_clock::now(), late);
            std::this_thread::sleep_for(20ms);
        }
    }
    int wait_for_lab() {
        int status = 0;
        waitpid(running_, &status, 0);
        running_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }

    fs::path output_file() const { return folder_.path() / "output"; }
    std::vector<std::string> sorted_output() const {
        std::istringstream text(scenarios::read_text_file(output_file().string()));
        std::vector<std::string> lines;
        for (std::string line; std::getline(text, line);) lines.push_back(line);
        std::ranges::sort(lines);
        return lines;
    }

    // All that bears the lab's name: namespaces, files, processes.
    std::vector<std::string> traces() const {
        std::vector<std::string> found;
        std::error_code ignored;
        for (const char* folder : {kNamespacesFolder, kLabsFolder, "/dev/shm", "/tmp"})
            for (const auto& entry : fs::directory_iterator(folder, ignored))
                if (entry.path().filename().string().find(name_) != std::string::npos)
                    found.push_back(entry.path());
        for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
            std::ifstream file(entry.path() / "environ");
            std::ostringstream variables;
            variables << file.rdbuf();
            if (variables.str().find("ZEROPROOF_LAB=" + name_) != std::string::npos)
                found.push_back(entry.path());
        }
        return found;
    }

    TemporaryFolder folder_;
    std::string name_ = fmt::format("zp-test-{}", getpid());
    pid_t running_ = -1;
};

using Strings = std::vector<std::string>;

TEST_F(Lab, HasRanksNodeByNodeAndTellsThemWhereTheyAre) {
    ASSERT_EQ(run_lab({"lab-2x2-1g"},
                      {"sh", "-c",
                       "echo $OMPI_COMM_WORLD_RANK $(hostname) $ZEROPROOF_LAB "
                       "$(grep -c shaped $ZEROPROOF_TOPOLOGY) $(ls /sys/class/net | wc -l >&2)"}),
              0)
        << scenarios::read_text_file(output_file().string());
    std::vector<std::string> lines = sorted_output();
    std::erase_if(lines, [&](const std::string& line) { return line.find(name_) == line.npos; });
    EXPECT_EQ(
        lines,
        (Strings{fmt::format("0 {0}-n0 {0} 1", name_), fmt::format("1 {0}-n0 {0} 1", name_),
                 fmt::format("2 {0}-n1 {0} 1", name_), fmt::format("3 {0}-n1 {0} 1", name_)}));
    EXPECT_EQ(traces(), Strings{});
}

TEST_F(Lab, GivesTheExitCodeOfTheCommandAndLeavesNothing) {
    EXPECT_EQ(run_lab({"lab-2x2-1g"}, {"sh", "-c", "exit 7"}), 7);
    EXPECT_EQ(traces(), Strings{});
    EXPECT_EQ(run_lab({"lab-1x4"}, {"sh", "-c", "exit 9"}), 9);
    EXPECT_EQ(traces(), Strings{});
}

// A busy machine makes a stream slower, never faster. So slow a link takes little of the processor.
TEST_F(Lab, CarriesWhatItsLinksAreShapedTo) {
    for (const double gbit_per_s : {0.05, 0.2}) {
        ASSERT_EQ(run_lab({"lab-2x2-1g", "--bandwidth-gbit-per-s", fmt::format("{}", gbit_per_s)},
                          {LAB_STREAM}),
                  0)
            << scenarios::read_text_file(output_file().string());
        double received = 0;
        for (const std::string& line : sorted_output())
            if (line.starts_with("received ")) received = std::stod(line.substr(9));
        EXPECT_GT(received, 0.5 * gbit_per_s);
        EXPECT_LT(received, 1.02 * gbit_per_s);
    }
}

TEST_F(Lab, EndsWithSignalsAndLeavesNothing) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        SCOPED_TRACE(signal);
        fs::remove(folder_.path() / "ready");
        start_sleeping_lab();
        EXPECT_NE(traces(), Strings{});
        kill(running_, signal);
        EXPECT_EQ(wait_for_lab(), 128 + signal);
        EXPECT_EQ(traces(), Strings{});
    }
}

TEST_F(Lab, ThatWasKilledIsCleanedAndNothingElse) {
    const std::string other = name_ + "x";
    start_sleeping_lab();
    ASSERT_EQ(run({"ip", "netns", "add", other}), 0);
    const fs::path others_file = fs::path(kNamespacesFolder) / other;
    EXPECT_EQ(run({ZEROPROOF_PROGRAM, "lab", "clean", name_}), 2) << "its owner runs";
    kill(running_, SIGKILL);
    wait_for_lab();

    EXPECT_EQ(run({ZEROPROOF_PROGRAM, "lab", "list"}), 0);
    const std::vector<std::string> listed = sorted_output();
    EXPECT_TRUE(std::ranges::any_of(listed, [&](const std::string& line) {
        return line.starts_with(name_ + " ") && line.find("left over") != line.npos;
    }));
    EXPECT_EQ(run({ZEROPROOF_PROGRAM, "lab", "clean", "--dry-run", name_}), 0);
    EXPECT_TRUE(fs::exists(fs::path(kNamespacesFolder) / (name_ + "-n0")));
    EXPECT_EQ(run({ZEROPROOF_PROGRAM, "lab", "clean", name_}), 0);
    EXPECT_EQ(traces(), Strings{others_file.string()});
    EXPECT_EQ(run({"ip", "netns", "delete", other}), 0);
}

TEST_F(Lab, RefusesANameThatIsTaken) {
    const std::string taken = name_ + "-n1";
    ASSERT_EQ(run({"ip", "netns", "add", taken}), 0);
    EXPECT_EQ(run_lab({"lab-2x2-1g"}, {"true"}), 2);
    EXPECT_EQ(traces(), Strings{(fs::path(kNamespacesFolder) / taken).string()});
    EXPECT_EQ(run({"ip", "netns", "delete", taken}), 0);
}

TEST_F(Lab, CountsWhatStagesSendOverItsLinks) {
    const std::string file = folder_.path() / "record.json";
    ASSERT_EQ(run_lab({"lab-2x2-1g"}, {ZEROPROOF_PROGRAM, "bench", "--stages", "2,3", "--params",
                                       "80K", "--units", "2", "--algorithms", "ring,hierarchical",
                                       "--repeat", "1", "--warmup", "1", "--json", file}),
              0)
        << scenarios::read_text_file(output_file().string());
    const BenchRecord record = read_bench_json(file);
    EXPECT_EQ(record.backend, "mpi");
    EXPECT_EQ(record.topology.nodes, 2);
    ASSERT_EQ(record.stages.size(), 4u);
    for (const StageResult& stage : record.stages)
        EXPECT_EQ(stage.nominal_elements, (stage.stage == 3 ? 3u : 2u) * stage.parameters);
    // Between nodes two levels send 1/2 of what passes, a flat ring 3/4; beside it the norm.
    const auto between_nodes = [&](std::size_t i) {
        return static_cast<double>((*record.stages[i].sent)[1]);
    };
    EXPECT_NEAR(between_nodes(2) / between_nodes(0), 2.0 / 3, 0.01);
}

}  // namespace
}  // namespace zeroproof::harness
