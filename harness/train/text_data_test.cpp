// Texts as samples of bytes: what is taken, and what is refused.
#include "harness/train/text_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {
namespace {

std::string error_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const scenarios::BadInput& error) {
        return error.what();
    }
    return "no error";
}

void expect_in(const std::string& text, std::initializer_list<std::string> parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

// So that the place of each byte shows in it, those above 127 too.
std::string counting(std::size_t bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(i);
    return text;
}

struct Sample {
    std::vector<std::int32_t> tokens, targets;
};
Sample sample_of(const TextData& data, std::size_t sequence, std::uint64_t seed,
                 std::uint64_t number) {
    Sample sample{std::vector<std::int32_t>(sequence), std::vector<std::int32_t>(sequence)};
    data.sample(seed, number, sample.tokens, sample.targets);
    return sample;
}

class TextFileOf : public testing::Test {
  protected:
    std::string file(const std::string& text) const {
        const std::string path = folder_.path() / "text";
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }
    TemporaryFolder folder_;
};

TEST_F(TextFileOf, MissingIsRefused) {
    const std::string path = folder_.path() / "no such text";
    expect_in(error_of([&] { TextData::of_file(path, 8); }), {path, "no such file"});
}

TEST_F(TextFileOf, AFolderIsRefused) {
    const std::string path = folder_.path();
    expect_in(error_of([&] { TextData::of_file(path, 8); }), {path, "folder"});
}

TEST_F(TextFileOf, AnEmptyTextIsRefused) {
    const std::string path = file("");
    expect_in(error_of([&] { TextData::of_file(path, 8); }), {path, "is empty"});
}

TEST_F(TextFileOf, WhatMayNotBeReadIsRefused) {
    if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
    const std::string path = file("a text");
    std::filesystem::permissions(path, std::filesystem::perms::none);
    expect_in(error_of([&] { TextData::of_file(path, 2); }), {path, "cannot be read"});
}

// A sample takes one byte more than it has tokens: the target of the last. Catches a text that is
// accepted and then read beyond its end.
TEST_F(TextFileOf, OneByteLessThanASampleIsRefused) {
    const std::string path = file(counting(8));
    expect_in(error_of([&] { TextData::of_file(path, 8); }), {path, "8 bytes", "takes 9"});
    const TextData data = TextData::of_file(file(counting(9)), 8);
    EXPECT_EQ(data.bytes(), 9u);
    for (std::uint64_t number = 0; number < 20; ++number)
        EXPECT_EQ(sample_of(data, 8, 1, number).targets.back(), 8);
}

TEST_F(TextFileOf, AnyByteIsAToken) {
    std::string text = counting(256);
    text += std::string("\0\r\n\0", 4);
    const TextData data = TextData::of_file(file(text), 259);
    const Sample sample = sample_of(data, 259, 1, 0);
    for (std::size_t i = 0; i < 259; ++i) {
        EXPECT_EQ(sample.tokens[i], static_cast<unsigned char>(text[i]));
        EXPECT_EQ(sample.targets[i], static_cast<unsigned char>(text[i + 1]));
    }
}

// Catches a target that is the token itself, and a sample that begins or ends outside of the text.
TEST(TextData, SamplesLieInTheTextWithTargetsOneBehind) {
    constexpr std::size_t kBytes = 200, kSequence = 16;
    const TextData data(counting(kBytes), "text", kSequence);
    for (std::uint64_t number = 0; number < 1000; ++number) {
        const Sample sample = sample_of(data, kSequence, 7, number);
        for (std::size_t i = 0; i < kSequence; ++i) {
            ASSERT_EQ(sample.tokens[i], sample.tokens[0] + static_cast<std::int32_t>(i));
            ASSERT_EQ(sample.targets[i], sample.tokens[i] + 1);
        }
        ASSERT_GE(sample.tokens.front(), 0);
        ASSERT_LT(sample.targets.back(), static_cast<std::int32_t>(kBytes));
    }
}

// Catches a first or last place that is never taken: 5 places, of which each is missed in 1000
// samples with a probability of (4 / 5)^1000.
TEST(TextData, EveryPlaceIsTaken) {
    constexpr std::size_t kSequence = 10;
    const TextData data(counting(kSequence + 5), "text", kSequence);
    std::set<std::int32_t> begins;
    for (std::uint64_t number = 0; number < 1000; ++number)
        begins.insert(sample_of(data, kSequence, 3, number).tokens[0]);
    EXPECT_EQ(begins, (std::set<std::int32_t>{0, 1, 2, 3, 4}));
}

// A sample is the same for whoever takes it, and whenever. Catches a state that goes on from call
// to call, and a number or a seed of which a part is ignored.
TEST(TextData, ASampleIsThatOfItsSeedAndNumber) {
    const TextData data(counting(250), "text", 4);
    const TextData same(counting(250), "another name", 4);
    const auto begins = [&](const TextData& of, std::uint64_t seed, std::uint64_t from) {
        std::vector<std::int32_t> all;
        for (std::uint64_t number = from; number < from + 50; ++number)
            all.push_back(sample_of(of, 4, seed, number).tokens[0]);
        return all;
    };
    const std::vector<std::int32_t> first = begins(data, 1, 0);
    EXPECT_EQ(begins(data, 1, 0), first);
    EXPECT_EQ(begins(same, 1, 0), first);
    for (const std::uint64_t other : {50ull, 1ull << 32, 1ull << 63})
        EXPECT_NE(begins(data, 1, other), first) << other;
    for (const std::uint64_t other : {0ull, 2ull, 1ull << 32, 1ull << 63})
        EXPECT_NE(begins(data, other, 0), first) << other;
    EXPECT_GT(std::set(first.begin(), first.end()).size(), 20u);
}

// What `zeroproof train` reads where it is given nothing else.
TEST(TextData, TheProgramBringsATextOfItsOwn) {
    ASSERT_FALSE(text_files().empty());
    const TextFile& licence = text_files().front();
    EXPECT_EQ(licence.name, "LICENSE");
    const TextData data(std::string(licence.text), std::string(licence.name), 1024);
    EXPECT_GT(data.bytes(), 1025u);
}

}  // namespace
}  // namespace zeroproof::harness
