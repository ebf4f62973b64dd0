// Checkpoint files come from disks: nothing in them is to be trusted.
#include "reference/checkpoint/checkpoint_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include "reference/checkpoint/checkpoint.h"

namespace zeroproof::reference {
namespace {

namespace fs = std::filesystem;

class CheckpointFiles : public testing::Test {
  protected:
    CheckpointFiles()
        : folder_(fs::temp_directory_path() /
                  ("zeroproof_checkpoint_file_test." + std::to_string(getpid()))),
          path_(folder_ / "rank 3") {
        fs::create_directories(folder_);
    }
    ~CheckpointFiles() override { fs::remove_all(folder_); }

    static CheckpointFile example() {
        CheckpointFile file;
        file.rank = 3;
        file.ranks = 12;
        file.progress = {.steps_taken = 7, .steps_skipped = 2, .loss_scale = {128, 1, 2}};
        file.slices = {{"a", 8, 5, {1, -0.0f, INFINITY}, {4, 5, 6}, {7, 8, 9}},
                       {"frozen one", 2, 0, {0.5f}, {}, {}},
                       {"", 1ull << 40, 1ull << 40, {}, {}, {}}};
        return file;
    }
    std::string bytes() const {
        std::ifstream stream(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    // As a new file: some file systems flush one that is cut and written again, each time.
    void put(const std::string& bytes) const {
        fs::remove(path_);
        std::ofstream(path_, std::ios::binary) << bytes;
    }
    // The message, or "" if the file is read.
    std::string error() const {
        try {
            (void)read_file(path_);
            return "";
        } catch (const BadCheckpoint& error) {
            return error.what();
        }
    }

    fs::path folder_;
    fs::path path_;
};

TEST_F(CheckpointFiles, RoundTripKeepsEveryFieldAndLeavesOneFile) {
    const CheckpointFile wanted = example();
    for (int round = 0; round < 2; ++round) write_file(wanted, path_);  // replaces the old one
    const CheckpointFile read = read_file(path_);
    EXPECT_EQ(read.rank, wanted.rank);
    EXPECT_EQ(read.ranks, wanted.ranks);
    EXPECT_EQ(read.progress.steps_taken, 7);
    EXPECT_EQ(read.progress.steps_skipped, 2);
    EXPECT_EQ(read.progress.loss_scale.value, 128);
    EXPECT_EQ(read.progress.loss_scale.steps_since_overflow, 1);
    EXPECT_EQ(read.progress.loss_scale.overflows_left, 2);
    ASSERT_EQ(read.slices.size(), wanted.slices.size());
    for (std::size_t i = 0; i < wanted.slices.size(); ++i) {
        EXPECT_EQ(read.slices[i].parameter, wanted.slices[i].parameter);
        EXPECT_EQ(read.slices[i].parameter_elements, wanted.slices[i].parameter_elements);
        EXPECT_EQ(read.slices[i].begin, wanted.slices[i].begin);
        EXPECT_EQ(read.slices[i].master, wanted.slices[i].master);
        EXPECT_EQ(read.slices[i].momentum, wanted.slices[i].momentum);
        EXPECT_EQ(read.slices[i].variance, wanted.slices[i].variance);
    }
    EXPECT_TRUE(std::signbit(read.slices[0].master[1]));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(CheckpointFiles, EveryTruncationIsAnErrorThatNamesTheFile) {
    write_file(example(), path_);
    const std::string whole = bytes();
    for (std::size_t length = 0; length < whole.size(); ++length) {
        put(whole.substr(0, length));
        EXPECT_NE(error().find(path_.string()), std::string::npos) << length;
        EXPECT_NE(error().find(length < 16 ? "ends too early" : "it is damaged"), std::string::npos)
            << length << ": " << error();
    }
    put(whole + '\0');
    EXPECT_NE(error().find("it is damaged"), std::string::npos);
}

TEST_F(CheckpointFiles, EachFlippedBitIsRefused) {
    write_file(example(), path_);
    const std::string whole = bytes();
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
        std::string flipped = whole;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
        put(flipped);
        const std::string message = error();
        EXPECT_NE(message.find(path_.string()), std::string::npos) << bit;
        // What is no longer the format's name or is a number of another version is refused as that.
        if (bit / 8 >= 7) {
            EXPECT_NE(message.find("it is damaged"), std::string::npos) << bit << ": " << message;
        }
    }
}

// Beyond the checksum, which anyone can compute, lies the parser.
std::string with_right_checksum(std::string bytes) {
    const std::size_t body = bytes.size() - sizeof(std::uint64_t);
    const std::uint64_t checksum = XXH3_64bits(bytes.data(), body);
    std::memcpy(bytes.data() + body, &checksum, sizeof checksum);
    return bytes;
}

TEST_F(CheckpointFiles, TruncationBehindARightChecksumIsFoundToo) {
    write_file(example(), path_);
    const std::string whole = bytes();
    for (std::size_t length = 16; length < whole.size(); ++length) {
        put(with_right_checksum(whole.substr(0, length)));
        EXPECT_NE(error().find("ends too early"), std::string::npos) << length << ": " << error();
    }
    put(with_right_checksum(whole + '\0'));
    EXPECT_NE(error().find("beyond its end"), std::string::npos);
}

// A length of 2^60 must not be believed: that would be an allocation, or a read past the end.
TEST_F(CheckpointFiles, AFlippedBitBehindARightChecksumIsReadOrRefusedWithoutHarm) {
    write_file(example(), path_);
    const std::string whole = bytes();
    std::size_t refused = 0;
    for (std::size_t bit = 0; bit < 8 * whole.size() - 64; ++bit) {
        std::string flipped = whole;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
        put(with_right_checksum(flipped));
        const std::string message = error();
        if (message.empty()) continue;
        ++refused;
        EXPECT_NE(message.find(path_.string()), std::string::npos);
    }
    EXPECT_GE(refused, 64u * (1 + 10));  // of the beginning and ten lengths, at the least
}

TEST_F(CheckpointFiles, AnotherVersionIsRefusedByItsNumber) {
    write_file(example(), path_);
    std::string old = bytes();
    old[6] = '2';
    old.resize(old.size() - 8);  // which had no checksum
    put(old);
    EXPECT_NE(error().find("is of version 02, this program reads 03"), std::string::npos)
        << error();
}

TEST_F(CheckpointFiles, NoCheckpointMissingFileAndUnequalMomentsAreNamed) {
    EXPECT_NE(error().find("cannot be read: No such file"), std::string::npos) << error();
    for (const char* other : {"x", "ZPPCX03", "something that is much longer than a beginning"}) {
        put(other);
        EXPECT_NE(error().find("is no checkpoint"), std::string::npos) << error();
    }
    CheckpointFile file = example();
    file.slices[0].variance.pop_back();
    write_file(file, path_);
    EXPECT_NE(error().find("different lengths"), std::string::npos);
    fs::remove(path_);
    fs::create_directory(path_);
    EXPECT_NE(error().find("cannot be read: Is a directory"), std::string::npos) << error();
}

TEST_F(CheckpointFiles, WhatIsOutOfRangeIsRefusedAndNamed) {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    const struct {
        std::string named;
        std::function<void(CheckpointFile&)> spoil;
    } rows[] = {
        {"rank 3 of 0", [](CheckpointFile& f) { f.ranks = 0; }},
        {"rank 3 of 3", [](CheckpointFile& f) { f.ranks = 3; }},
        {"-1 steps", [](CheckpointFile& f) { f.progress.steps_taken = -1; }},
        {"7 steps", [](CheckpointFile& f) { f.progress.steps_taken = kMost; }},
        {"-2 steps", [](CheckpointFile& f) { f.progress.steps_skipped = -2; }},
        {"7 steps", [](CheckpointFile& f) { f.progress.steps_skipped = kMost; }},
        {"scale of 0", [](CheckpointFile& f) { f.progress.loss_scale.value = 0; }},
        {"scale of -1", [](CheckpointFile& f) { f.progress.loss_scale.value = -1; }},
        {"scale of inf", [](CheckpointFile& f) { f.progress.loss_scale.value = INFINITY; }},
        {"scale of nan", [](CheckpointFile& f) { f.progress.loss_scale.value = NAN; }},
        {"-1 and 2", [](CheckpointFile& f) { f.progress.loss_scale.steps_since_overflow = -1; }},
        {"7 and 2",
         [](CheckpointFile& f) { f.progress.loss_scale.steps_since_overflow = 2147483647; }},
        {"1 and -1", [](CheckpointFile& f) { f.progress.loss_scale.overflows_left = -1; }},
        {"'a' beyond", [](CheckpointFile& f) { f.slices[0].begin = 6; }},
        {"'a' beyond", [](CheckpointFile& f) { f.slices[0].begin = ~std::uint64_t{0}; }},
        {"'a' beyond", [](CheckpointFile& f) { f.slices[0].parameter_elements = 7; }},
    };
    for (const auto& [named, spoil] : rows) {
        CheckpointFile file = example();
        spoil(file);
        write_file(file, path_);
        EXPECT_NE(error().find(named), std::string::npos) << named << " is not in: " << error();
        EXPECT_NE(error().find(path_.string()), std::string::npos);
    }
}

TEST_F(CheckpointFiles, WritingIntoNoFolderIsAnErrorThatNamesTheFile) {
    try {
        write_file(example(), folder_ / "no" / "such");
        FAIL() << "written";
    } catch (const BadCheckpoint& error) {
        EXPECT_NE(std::string(error.what()).find("such"), std::string::npos);
    }
}

}  // namespace
}  // namespace zeroproof::reference
