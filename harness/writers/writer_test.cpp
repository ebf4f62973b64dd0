// What becomes of files.
#include "harness/writers/writer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::size_t entries(const fs::path& folder) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

TEST(WriteWhole, ReplacesAndLeavesNothingBeside) {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "out.json";
    check_writable(path);
    EXPECT_EQ(entries(folder.path()), 0u);
    write_whole(path, "first, and longer");
    write_whole(path, "second");
    EXPECT_EQ(content_of(path), "second");
    EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(WriteWhole, FollowsALinkAndKeepsIt) {
    const TemporaryFolder folder;
    const fs::path link = folder.path() / "link";
    fs::create_symlink("file", link);
    write_whole(link, "text");
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(content_of(folder.path() / "file"), "text");
}

TEST(WriteWhole, SaysWhatCannotBeWrittenAndLeavesNothing) {
    const TemporaryFolder folder;
    const fs::path nowhere = folder.path() / "missing" / "out.json";
    for (const auto& attempt : {+[](const fs::path& p) { write_whole(p, "text"); },
                                +[](const fs::path& p) { check_writable(p); }}) {
        try {
            attempt(nowhere);
            FAIL() << "written";
        } catch (const Unwritable& error) {
            EXPECT_EQ(error.what(),
                      "cannot write " + nowhere.string() + ": No such file or directory");
        }
        EXPECT_THROW(attempt(folder.path()), Unwritable) << "a folder";
        EXPECT_THROW(attempt(""), Unwritable);
        EXPECT_EQ(entries(folder.path()), 0u);
    }
}

// Replaced by a file, it would be gone for the whole machine.
TEST(WriteWhole, WritesADeviceInPlace) {
    check_writable("/dev/null");
    write_whole("/dev/null", "text");
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(WriteWhole, AFullDeviceIsAnError) {
    if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    EXPECT_THROW(write_whole("/dev/full", "text"), Unwritable);
}

// What the process may make is up to its mask, as for any program.
TEST(WriteWhole, HonoursTheMask) {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "out";
    const mode_t before = umask(022);
    write_whole(path, "text");
    umask(before);
    EXPECT_EQ(fs::status(path).permissions() & fs::perms::mask, fs::perms{0644});
}

}  // namespace
}  // namespace zeroproof::harness
