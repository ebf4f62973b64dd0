// Tensors through files, and files that somebody else has made.
#include "harness/protocol/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "harness/protocol/whole_file.h"
#include "harness/temporary_folder.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;
using scenarios::BadInput;

std::string length_of(std::uint64_t bytes) {
    std::string text(sizeof(bytes), '\0');
    std::memcpy(text.data(), &bytes, sizeof(bytes));
    return text;
}

std::string file_with(const std::string& header, const std::string& data = "") {
    return length_of(header.size()) + header + data;
}

// Zero bytes.
std::string zeros(std::size_t count) {
    return std::string(count, '\0');
}

template <typename Value>
std::string bits(std::initializer_list<Value> values) {
    std::string text;
    for (const Value value : values) {
        text.resize(text.size() + sizeof(value));
        std::memcpy(text.data() + text.size() - sizeof(value), &value, sizeof(value));
    }
    return text;
}

class Safetensors : public testing::Test {
  protected:
    void put(const std::string& name, const std::string& content) const {
        std::ofstream(path(name), std::ios::binary) << content;
    }
    fs::path path(const std::string& name) const { return folder_.path() / name; }
    SafetensorsReader read(const std::string& name = "t",
                           std::uint64_t most_bytes = 1 << 20) const {
        return SafetensorsReader(UntrustedFile::demand(folder_.path(), name, most_bytes));
    }
    std::string message_of(const std::function<void()>& action) const {
        try {
            action();
        } catch (const BadInput& error) {
            return error.what();
        }
        return "nothing was wrong";
    }

    TemporaryFolder folder_;
};

#define EXPECT_HOLDS(text, part) \
    EXPECT_NE((text).find(part), std::string::npos) << (text) << "\nexpected: " << (part)

TEST_F(Safetensors, WhatIsWrittenIsReadBackBitByBit) {
    const std::vector<float> values = {
        0, -0.0f, 1.5f, INFINITY, std::bit_cast<float>(0x7F812345u), 0x1p-149f};
    const std::vector<std::uint8_t> bytes = {0, 7, 255};
    SafetensorsWriter writer;
    writer.add("a \"quoted\"/\u00e9\n", {2, 3}, std::span(values));
    writer.add("scalar", {}, std::span(values).first(1));
    writer.add("empty", {0, 5}, std::span<const float>());
    writer.add("bytes", {3}, std::span(bytes));
    writer.add("in pieces", {4}, [](const SafetensorsWriter::Append& append) {
        append(std::vector<float>{1});
        append(std::vector<float>{2, 3, 4});
    });
    writer.write(path("t"));

    const SafetensorsReader reader = read();
    EXPECT_EQ(reader.tensors().size(), 5u);
    const std::vector<float> again = reader.floats("a \"quoted\"/\u00e9\n", {2, 3});
    ASSERT_EQ(again.size(), values.size());
    EXPECT_EQ(std::memcmp(again.data(), values.data(), sizeof(float) * values.size()), 0);
    EXPECT_EQ(reader.floats("scalar", Shape{}), std::vector<float>{0});
    EXPECT_TRUE(reader.floats("empty", {0, 5}).empty());
    EXPECT_EQ(reader.bytes("bytes", {3}), bytes);
    EXPECT_EQ(reader.floats("in pieces", {4}), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(Safetensors, OtherTypesAndNotesAreInTheHeader) {
    const std::vector<double> wide = {0.1, -1};
    const std::vector<std::int32_t> numbers = {-1, 0, 1 << 30};
    SafetensorsWriter writer;
    writer.note("model", R"({"layers": 2})");
    writer.add("wide", {2}, std::span(wide));
    writer.add("numbers", {3}, std::span(numbers));
    const std::string bytes = writer.bytes();
    EXPECT_HOLDS(bytes, R"("__metadata__":{"model":"{\"layers\": 2}"})");
    EXPECT_TRUE(bytes.ends_with(bits<double>({0.1, -1}) + bits<std::int32_t>({-1, 0, 1 << 30})));
    put("t", bytes);
    EXPECT_EQ(read().floats("wide", {2}), (std::vector<float>{0.1f, -1}));
    EXPECT_HOLDS(message_of([&] { read().floats("numbers", {3}); }), "has the type I32; expected");
    writer.write(path("written"));
    EXPECT_EQ(read("written").tensors().size(), 2u);
}

TEST_F(Safetensors, AFileOfNoTensorsIsWhole) {
    SafetensorsWriter().write(path("t"));
    EXPECT_TRUE(read().tensors().empty());
}

TEST_F(Safetensors, NarrowTypesAreWidenedAndWideOnesRounded) {
    put("t", file_with(R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},
                           "b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]},
                           "d":{"dtype":"F64","shape":[7],"data_offsets":[12,68]}})",
                       bits<std::uint16_t>({0x3C00, 0x0001, 0xFC00, 0x7E00, 0x3F80, 0xFF80}) +
                           bits<double>({0.1, 1 + 0x1p-24, 1 + 3 * 0x1p-24, 1e300, -1e300, NAN,
                                         0x1.fffffefffffffp127})));
    const SafetensorsReader reader = read();
    const std::vector<float> half = reader.floats("h", {4});
    EXPECT_EQ(half[0], 1);
    EXPECT_EQ(half[1], 0x1p-24f);
    EXPECT_EQ(half[2], -INFINITY);
    EXPECT_TRUE(std::isnan(half[3]));
    EXPECT_EQ(reader.floats("b", {2}), (std::vector<float>{1, -INFINITY}));
    const std::vector<float> wide = reader.floats("d", {7});
    EXPECT_EQ(wide[0], 0.1f);
    EXPECT_EQ(wide[1], 1);             // a tie, to even
    EXPECT_EQ(wide[2], 1 + 0x1p-22f);  // and the other way
    EXPECT_EQ(wide[3], INFINITY);
    EXPECT_EQ(wide[4], -INFINITY);
    EXPECT_TRUE(std::isnan(wide[5]));
    EXPECT_EQ(wide[6], std::numeric_limits<float>::max());
}

TEST_F(Safetensors, EveryHostileFileIsRefusedWithItsNameAndTheTensors) {
    const auto one = [](const std::string& row, std::size_t data_bytes) {
        return file_with(R"({"x":)" + row + "}", zeros(data_bytes));
    };
    const auto place = [&](const std::string& type, const std::string& shape,
                           const std::string& offsets, std::size_t data_bytes) {
        return one(
            fmt::format(R"({{"dtype":{},"shape":{},"data_offsets":{}}})", type, shape, offsets),
            data_bytes);
    };
    const std::string f32 = R"("F32")";
    const auto two = [](const char* first, const char* second, std::size_t data_bytes) {
        return file_with(fmt::format(R"({{"x":{{"dtype":"U8","shape":[4],"data_offsets":{}}},
                                          "y":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
                                     first, second),
                         zeros(data_bytes));
    };
    const struct {
        const char* what;
        std::string content;
        const char* message;
    } rows[] = {
        {"empty", "", "0 bytes are no safetensors file"},
        {"no whole length", "1234567", "7 bytes"},
        {"no header", length_of(0), "no JSON object"},
        {"header beyond the file", length_of(3) + "{}",
         "3 bytes, by its own word, in a file of 10"},
        {"header of 10 GB", length_of(10'000'000'000) + "{}", "10000000000 bytes"},
        {"header of 2^64 - 1", length_of(~std::uint64_t{0}) + "{}", "by its own word"},
        {"length that wraps", length_of(~std::uint64_t{0} - 7) + "{}", "by its own word"},
        {"no JSON", file_with("{nothing}"), "header: "},
        {"half of a header", file_with(R"({"x":{"dtype")"), "header: "},
        {"text behind the header", file_with("{} {}"), "header: "},
        {"an array", file_with("[]"), "no JSON object"},
        {"a space first", file_with(" {}"), "no JSON object"},
        {"nested deep", file_with("{\"x\":" + std::string(100'000, '[')), "tensor \"x\""},
        {"nested deep in objects", file_with(R"({"x":{"shape":{"x":{}}}})"), "tensor \"x\""},
        {"not UTF-8", file_with("{\"\xFF\":1}"), "header: "},
        {"overlong UTF-8", file_with("{\"\xC0\x80\":1}"), "header: "},
        {"a number", file_with(R"({"x":1})"), "tensor \"x\": a value"},
        {"null", file_with(R"({"x":null})"), "tensor \"x\": a value"},
        {"a text", file_with(R"({"x":"F32"})"), "tensor \"x\": a value"},
        {"no keys", one("{}", 0), "are needed"},
        {"no offsets", one(R"({"dtype":"F32","shape":[]})", 4), "are needed"},
        {"a key twice", one(R"({"dtype":"F32","dtype":"F32","shape":[]})", 4), "\"dtype\" twice"},
        {"an unknown key", one(R"({"strides":[]})", 0), "the key \"strides\""},
        {"an unknown type", place(R"("I64")", "[1]", "[0,8]", 8), "the type \"I64\""},
        {"an eight-bit type", place(R"("F8_E4M3")", "[1]", "[0,1]", 1), "the type \"F8_E4M3\""},
        {"a type that is none", place("7", "[1]", "[0,4]", 4), "a value"},
        {"a shape that is none", place(f32, "4", "[0,16]", 16), "a value"},
        {"a negative size", place(f32, "[-1]", "[0,4]", 4), "a value"},
        {"a broken size", place(f32, "[1.5]", "[0,4]", 4), "a value"},
        {"a huge size", place(f32, "[1e30]", "[0,4]", 4), "a value"},
        {"a size beyond 64 bits", place(f32, "[18446744073709551617]", "[0,4]", 4), "a value"},
        {"a list in a shape", place(f32, "[[1]]", "[0,4]", 4), "a value"},
        {"a shape too small", place(f32, "[2]", "[0,12]", 12), "12 bytes for the shape [2] of F32"},
        {"a shape too large", place(f32, "[4]", "[0,12]", 12), "12 bytes for the shape [4] of F32"},
        {"a product that wraps to 0", place(f32, "[4294967296,4294967296]", "[0,0]", 0),
         "0 bytes for the shape"},
        {"a product that wraps to 1", place(f32, "[274177,67280421310721]", "[0,4]", 4),
         "4 bytes for the shape"},
        {"bytes that wrap", place(f32, "[4611686018427387905]", "[0,4]", 4),
         "4 bytes for the shape"},
        {"33 dimensions",
         place(f32, fmt::format("[{}]", fmt::join(std::vector(33, 1), ",")), "[0,4]", 4),
         "more than 32 dimensions"},
        {"one offset", place(f32, "[1]", "[0]", 4), "two numbers"},
        {"three offsets", place(f32, "[1]", "[0,4,8]", 4), "a value"},
        {"reversed offsets", place(f32, "[1]", "[4,0]", 4), "the offsets 4 to 0"},
        {"offsets beyond the file", place(f32, "[1]", "[0,4]", 3), "the offsets 0 to 4 in 3 bytes"},
        {"offsets far beyond the file",
         place(f32, "[1]", "[18446744073709551612,18446744073709551615]", 4), "the offsets"},
        {"a hole at the start", place(f32, "[1]", "[4,8]", 8), "begins at 4"},
        {"bytes behind", place(f32, "[1]", "[0,4]", 9), "5 bytes after the last tensor"},
        {"data without tensors", file_with("{}", zeros(4)), "4 bytes after the last tensor"},
        {"overlap", two("[0,4]", "[2,6]", 6), "tensor \"y\": begins at 2"},
        {"the same bytes twice", two("[0,4]", "[0,4]", 4), "begins at 0"},
        {"a hole", two("[0,4]", "[6,10]", 10), "tensor \"y\": begins at 6"},
        {"a name twice",
         file_with(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                       "x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                   zeros(2)),
         "tensor \"x\": stands twice"},
        {"no name", file_with(R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
         "without a name"},
        {"metadata twice", file_with(R"({"__metadata__":{},"__metadata__":{}})"), "stands twice"},
        {"metadata of numbers", file_with(R"({"__metadata__":{"a":1}})"), "a value"},
        {"a name that would break the line",
         file_with("{\"a\\nb\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,9]}}", "1"),
         R"(tensor "a\nb")"},
    };
    for (const auto& [what, content, message] : rows) {
        SCOPED_TRACE(what);
        put("t", content);
        const std::string seen = message_of([&] { read(); });
        EXPECT_HOLDS(seen, message);
        EXPECT_HOLDS(seen, path("t").string() + ": ");
        EXPECT_LT(seen.size(), 1000u);
    }
}

TEST_F(Safetensors, WhatTheFormatAllowsIsRead) {
    put("t", file_with(R"({"__metadata__":{"format":"pt"},
                           "y":{"data_offsets":[4,8],"shape":[1],"dtype":"F32"},
                           "none":{"dtype":"F32","shape":[9223372036854775807,0],
                                   "data_offsets":[4,4]},
                           "x":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}     )",
                       bits<float>({1, 2})));
    const SafetensorsReader reader = read();
    EXPECT_EQ(reader.floats("x", {1, 1}), std::vector<float>{1});
    EXPECT_EQ(reader.floats("y", {1}), std::vector<float>{2});
    EXPECT_TRUE(reader.has("none"));
    EXPECT_FALSE(reader.has("__metadata__"));
}

TEST_F(Safetensors, OtherShapesAndTypesThanAskedForAreNamed) {
    put("t", file_with(R"({"x":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},
                           "b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})",
                       zeros(9)));
    const SafetensorsReader reader = read();
    EXPECT_HOLDS(message_of([&] { (void)reader.floats("z", {1}); }), "tensor \"z\": is missing");
    EXPECT_HOLDS(message_of([&] { (void)reader.floats("b", {1}); }), "has the type U8");
    EXPECT_HOLDS(message_of([&] { (void)reader.bytes("x", {2, 1}); }), "F32 [2, 1]");
    const Shape shapes[] = {{2}, {1, 2}};
    EXPECT_HOLDS(message_of([&] { (void)reader.floats("x", shapes); }),
                 "has the shape [2, 1]; expected is [2] or [1, 2]");
}

TEST_F(Safetensors, OnlyARegularFileBehindNoLinkIsOpened) {
    SafetensorsWriter().write(path("t"));
    fs::create_directory(path("folder"));
    fs::copy_file(path("t"), path("folder") / "t");
    fs::create_symlink(path("t"), path("link"));
    fs::create_symlink(path("folder"), path("linked"));
    fs::create_symlink(path("nowhere"), path("dangling"));
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    const auto open = [](const fs::path& folder, const fs::path& relative) {
        return UntrustedFile::open(folder, relative, 100);
    };
    EXPECT_TRUE(open(folder_.path(), "folder/t").has_value());
    EXPECT_FALSE(open(folder_.path(), "nothing").has_value());
    EXPECT_FALSE(open(folder_.path(), "nothing/t").has_value());
    EXPECT_FALSE(open(path("nothing"), "t").has_value());
    EXPECT_HOLDS(message_of([&] { UntrustedFile::demand(folder_.path(), "nothing", 100); }),
                 "nothing: is missing");
    const struct {
        fs::path folder;
        const char* relative;
        const char* message;
    } rows[] = {
        {folder_.path(), "link", "symbolic link"},
        {folder_.path(), "dangling", "symbolic link"},
        {folder_.path(), "linked/t", "symbolic link"},
        {path("linked"), "t", "symbolic link"},
        {folder_.path(), "t/t", "no folder"},
        {folder_.path(), "folder", "is no regular file"},
        {folder_.path(), "pipe", "is no regular file"},
        {"/dev", "null", "is no regular file"},
        {"/dev", "zero", "is no regular file"},
    };
    for (const auto& [folder, relative, message] : rows)
        EXPECT_HOLDS(message_of([&] { open(folder, relative); }), message);
    put("large", zeros(101));
    EXPECT_HOLDS(message_of([&] { open(folder_.path(), "large"); }),
                 "has 101 bytes; at most 100 are expected");
}

TEST_F(Safetensors, AFileThatShrinksIsRefused) {
    SafetensorsWriter writer;
    const std::vector<float> values(100);
    writer.add("x", {100}, std::span(values));
    writer.write(path("t"));
    const SafetensorsReader reader = read();
    fs::resize_file(path("t"), 100);
    EXPECT_HOLDS(message_of([&] { (void)reader.floats("x", {100}); }), "became shorter");
}

TEST_F(Safetensors, AFileThatCannotBeFinishedLeavesNothing) {
    put("t", "as before");
    SafetensorsWriter writer;
    writer.add("x", {2}, [](const SafetensorsWriter::Append& append) {
        append(std::vector<float>{1});
        throw std::runtime_error("no more");
    });
    EXPECT_THROW(writer.write(path("t")), std::runtime_error);
    EXPECT_EQ(fs::file_size(path("t")), 9u);
    SafetensorsWriter few;
    few.add("x", {2}, [](const auto& append) { append(std::vector<float>{1}); });
    EXPECT_THROW(few.write(path("t")), std::logic_error);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
    EXPECT_THROW(SafetensorsWriter().write(path("nowhere") / "t"), Unwritable);
}

TEST_F(Safetensors, ALinkThatHasTheNameIsReplacedNotFollowed) {
    put("target", "as before");
    fs::create_symlink(path("target"), path("t"));
    SafetensorsWriter().write(path("t"));
    EXPECT_FALSE(fs::is_symlink(path("t")));
    EXPECT_EQ(fs::file_size(path("target")), 9u);
}

TEST_F(Safetensors, MistakesOfTheCallerAreFaults) {
    SafetensorsWriter writer;
    const std::vector<float> values(3);
    writer.add("x", {3}, std::span(values));
    EXPECT_THROW(writer.add("x", {3}, std::span(values)), std::logic_error);
    EXPECT_THROW(writer.add("y", {2}, std::span(values)), std::logic_error);
    EXPECT_THROW(writer.add("", {3}, std::span(values)), std::logic_error);
    EXPECT_THROW(writer.add("__metadata__", {3}, std::span(values)), std::logic_error);
}

}  // namespace
}  // namespace zeroproof::harness
