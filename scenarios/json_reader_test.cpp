// Reading what somebody else wrote: every fault is an error that names file and place.
#include "scenarios/json_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

namespace zeroproof::scenarios {
namespace {

std::string error_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const BadInput& error) {
        return error.what();
    }
    return "no error";
}

void expect_in(const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

const Json& document() {
    static const Json json = parse_json(
        R"({"n": 3, "huge": 18446744073709551615, "x": 1.5, "s": "b", "yes": true, "a": [1, "two"]})",
        "f.json");
    return json;
}
JsonReader reader() {
    return {document(), "f.json"};
}

TEST(ParseJson, MalformedTextNamesFileAndPlace) {
    expect_in(error_of([] { parse_json("{\n  \"a\": 1,\n  b\n}", "x.json"); }),
              {"x.json", "line 3", "column"});
    for (const char* text : {"", "{", "[1, 2", "{\"a\" 1}", "{\"a\": 1}}", "nan", "01", "\"\xff\"",
                             "{\"a\": 1e999}", "// comment\n{}", "{\"a\": 1,}"})
        expect_in(error_of([&] { parse_json(text, "x.json"); }), {"x.json"});
}

TEST(ParseJson, EveryTruncationIsAnError) {
    const std::string text = R"({"a": [1, {"b": "c"}], "d": -1.5e3, "e": null})";
    EXPECT_NO_THROW(parse_json(text, "x.json"));
    for (std::size_t length = 0; length < text.size(); ++length)
        EXPECT_THROW(parse_json(text.substr(0, length), "x.json"), BadInput) << length;
}

// A second value would silently win.
TEST(ParseJson, KeyThatStandsTwiceIsAnErrorAtAnyDepth) {
    expect_in(error_of([] { parse_json(R"({"a": [{"k": 1, "k": 2}]})", "x.json"); }),
              {"x.json", "\"k\"", "twice"});
    EXPECT_NO_THROW(parse_json(R"({"a": {"k": 1}, "b": {"k": 2}, "k": [{"k": 3}]})", "x.json"));
}

TEST(ParseJson, TheEmptyKeyTwiceIsAnErrorToo) {
    expect_in(error_of([] { parse_json(R"({"": 1, "": 2})", "x.json"); }), {"\"\"", "twice"});
}

// Each key is searched for in all those before: a few megabytes of them would take hours.
TEST(ParseJson, ManyKeysInOneObjectAreAnError) {
    std::string text = "{\"first\": 0";
    for (int key = 0; key < 500'000; ++key) text += ", \"" + std::to_string(key) + "\": 0";
    expect_in(error_of([&] { parse_json(text + "}", "x.json"); }), {"x.json", "1000 keys"});
}

TEST(ParseJson, DeepNestingIsNoStackOverflow) {
    EXPECT_THROW(parse_json(std::string(1'000'000, '['), "x.json"), BadInput);
}

TEST(ReadTextFile, MissingFileAndFolderAreErrorsAndAnEmptyFileIsNot) {
    const auto folder = std::filesystem::temp_directory_path();
    expect_in(error_of([] { read_text_file("/no/such.json"); }),
              {"/no/such.json", "cannot be read"});
    expect_in(error_of([&] { read_text_file(folder.string()); }), {"cannot be read"});
    const auto file = folder / "zeroproof_json_reader_test.txt";
    for (const std::string& text : {std::string(), std::string("a\0b\r\n", 5)}) {
        std::ofstream(file, std::ios::binary) << text;
        EXPECT_EQ(read_text_file(file.string()), text);
    }
    std::filesystem::remove(file);
}

TEST(JsonReader, ReadsWhatIsThere) {
    EXPECT_EQ(reader().at("n").integer(3, 3), 3);
    EXPECT_EQ(reader().at("n").number(), 3);
    EXPECT_EQ(reader().at("x").number(), 1.5);
    EXPECT_EQ(reader().at("s").text(), "b");
    EXPECT_EQ(reader().at("s").choice({"a", "b"}), 1u);
    EXPECT_TRUE(reader().at("yes").boolean());
    EXPECT_EQ(reader().at("a").items().size(), 2u);
    EXPECT_FALSE(reader().has("no"));
    EXPECT_FALSE(reader().at("n").has("no"));
    EXPECT_NO_THROW(reader().allow({"n", "huge", "x", "s", "yes", "a"}));
}

// Nothing is converted, clamped or ignored; the message names the place.
TEST(JsonReader, EveryMisfitIsAnErrorWithItsPlace) {
    const struct {
        const char* what;
        std::function<void()> act;
        std::initializer_list<const char*> parts;
    } rows[] = {
        {"missing key", [] { (void)reader().at("no"); }, {"f.json: /", "\"no\" is missing"}},
        {"key of a number", [] { (void)reader().at("n").at("k"); }, {"/n", "expected an object"}},
        {"unknown key",
         [] {
             reader().allow({"n", "x"});
         },
         {"unknown key \"huge\"", "n, x"}},
        {"keys of a number", [] { reader().at("n").allow({}); }, {"/n", "object"}},
        {"items of a number", [] { (void)reader().at("n").items(); }, {"/n", "array"}},
        {"text", [] { (void)reader().at("n").text(); }, {"/n", "string"}},
        {"text in an array", [] { (void)reader().at("a").items()[0].text(); }, {"/a/0", "string"}},
        {"boolean", [] { (void)reader().at("n").boolean(); }, {"/n", "true or false"}},
        {"number", [] { (void)reader().at("s").number(); }, {"/s", "number"}},
        {"fraction", [] { (void)reader().at("x").integer(0, 9); }, {"/x", "integer"}},
        {"too small", [] { (void)reader().at("n").integer(4, 9); }, {"/n", "3", "4 to 9"}},
        {"too large", [] { (void)reader().at("n").integer(0, 2); }, {"/n", "3", "0 to 2"}},
        {"beyond 63 bits", [] { (void)reader().at("huge").integer(-5, 5); }, {"/huge", "184467"}},
        {"empty range", [] { (void)reader().at("n").integer(0, -1); }, {"/n", "0 to -1"}},
        {"choice",
         [] {
             (void)reader().at("s").choice({"x", "y"});
         },
         {"/s", "\"b\"", "x, y"}},
        {"fail", [] { reader().at("a").items()[1].fail("why"); }, {"f.json: /a/1: why"}},
    };
    for (const auto& [what, act, parts] : rows) {
        SCOPED_TRACE(what);
        expect_in(error_of(act), parts);
    }
}

}  // namespace
}  // namespace zeroproof::scenarios
