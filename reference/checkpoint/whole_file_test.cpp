// What is left of a file that could not be written.
#include "reference/checkpoint/whole_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "reference/checkpoint/checkpoint.h"

namespace zeroproof::reference {
namespace {

namespace fs = std::filesystem;

class WholeFiles : public testing::Test {
  protected:
    WholeFiles()
        : folder_(fs::temp_directory_path() /
                  ("zeroproof_whole_file_test." + std::to_string(getpid()))) {
        fs::create_directories(folder_);
    }
    ~WholeFiles() override { fs::remove_all(folder_); }

    static std::string error_of(const std::function<void()>& call) {
        try {
            call();
            return "";
        } catch (const BadCheckpoint& error) {
            return error.what();
        }
    }
    std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), {}); }

    fs::path folder_;
};

TEST_F(WholeFiles, AreReadAsWrittenAndReplaced) {
    const std::string large(300'000, 'x');  // several pieces
    for (const std::string& bytes : {large, std::string(), std::string("a\0b", 3)}) {
        write_whole(bytes, folder_ / "file");
        EXPECT_EQ(read_whole(folder_ / "file"), bytes);
        EXPECT_EQ(files(), 1);
    }
}

TEST_F(WholeFiles, ErrorsNameTheFileAndTheReason) {
    const fs::path nowhere = folder_ / "no" / "such";
    for (const std::string& message :
         {error_of([&] { write_whole("a", nowhere); }),
          error_of([&] { (void)read_whole(nowhere); }), error_of([&] { flush_folder(nowhere); })}) {
        EXPECT_NE(message.find(nowhere.string()), std::string::npos) << message;
        EXPECT_NE(message.find("No such file"), std::string::npos) << message;
    }
}

TEST_F(WholeFiles, ANameThatCannotBeGivenLeavesNoUnfinishedFile) {
    fs::create_directories(folder_ / "taken" / "by a folder");
    const std::string message = error_of([&] { write_whole("a", folder_ / "taken"); });
    EXPECT_NE(message.find("Is a directory"), std::string::npos) << message;
    EXPECT_EQ(files(), 1);
}

// A limit on the size of files stands for a full disk: after some bytes the system takes no more.
// It holds for a whole process, so it is set in one of its own.
TEST_F(WholeFiles, AFullDiskIsAnErrorAndTheOldFileStays) {
    const fs::path path = folder_ / "file";
    write_whole("old", path);
    const pid_t child = fork();
    ASSERT_NE(child, -1);
    if (child == 0) {
        const rlimit limit{10'000, 10'000};
        std::signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
        const std::string message = error_of([&] { write_whole(std::string(100'000, 'x'), path); });
        const bool named = message.find(path.string()) != std::string::npos &&
                           message.find("cannot be written: File too large") != std::string::npos;
        _exit(named ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(read_whole(path), "old");
    EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace zeroproof::reference
