// The files of models, and what is no such file: every fault is an error that names file and place.
#include "scenarios/transformer_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "scenarios/json_reader.h"
#include "scenarios/planner/planned_transformer.h"

namespace zeroproof::scenarios {
namespace {

namespace fs = std::filesystem;

std::string error_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const BadInput& error) {
        return error.what();
    }
    return "no error";
}

// A model that is in order.
Json good() {
    return {{"format", "zeroproof model"},
            {"version", 1},
            {"name", "some"},
            {"purpose", "A test."},
            {"family", "llama"},
            {"layers", 2},
            {"hidden", 32},
            {"heads", 4},
            {"kv_heads", 2},
            {"feed_forward", 96},
            {"vocabulary", 256},
            {"sequence", 16},
            {"dropout", 0.1}};
}
TransformerModel read(const Json& json) {
    return read_transformer_model(json.dump(), "some.json");
}

TEST(TransformerModel, ReadsWhatStandsThere) {
    const TransformerModel model = read(good());
    EXPECT_EQ(model.name, "some");
    EXPECT_EQ(model.purpose, "A test.");
    EXPECT_EQ(model.family, TransformerFamily::llama);
    EXPECT_FALSE(model.is_gpt2());
    EXPECT_EQ(model.layers, 2u);
    EXPECT_EQ(model.hidden, 32u);
    EXPECT_EQ(model.heads, 4u);
    EXPECT_EQ(model.kv_heads, 2u);
    EXPECT_EQ(model.head_size(), 8u);
    EXPECT_EQ(model.feed_forward, 96u);
    EXPECT_EQ(model.vocabulary, 256u);
    EXPECT_EQ(model.sequence, 16u);
    EXPECT_EQ(model.dropout, 0.1);
}

// What need not stand there. Catches a default that is another model.
TEST(TransformerModel, LeavesOutWhatHasADefault) {
    Json json = good();
    for (const char* key : {"purpose", "kv_heads", "dropout"}) json.erase(key);
    const TransformerModel model = read(json);
    EXPECT_EQ(model.purpose, "");
    EXPECT_EQ(model.kv_heads, 4u);
    EXPECT_EQ(model.dropout, 0);
}

// Every file of the folder is in the program under its own name, and no two share one.
TEST(TransformerModel, EachFileIsAModelOfItsName) {
    std::set<std::string> names;
    for (const ModelFile& file : model_files()) {
        const std::string stem = fs::path(file.name).stem();
        const TransformerModel model = load_transformer_model(stem);
        EXPECT_EQ(model.name, stem);
        EXPECT_FALSE(model.purpose.empty()) << stem;
        EXPECT_TRUE(names.insert(stem).second) << stem;
    }
    std::set<std::string> in_folder;
    for (const auto& entry : fs::directory_iterator(ZEROPROOF_SOURCE_DIR "/scenarios/models"))
        in_folder.insert(entry.path().stem());
    EXPECT_EQ(names, in_folder);
}

// What the names say of the number of parameters. Catches a size that is mistyped.
TEST(TransformerModel, SizesAreThoseOfTheName) {
    const auto parameters = [](const char* name) {
        double sum = 0;
        for (const auto& parameter : planned_model(load_transformer_model(name), 1).parameters)
            sum += static_cast<double>(parameter.elements);
        return sum;
    };
    // GPT-2 has 1'557'611'200 (its published weights). The ZeRO paper's model is of 100 billion.
    EXPECT_EQ(parameters("gpt2-1.5b"), 1557611200);
    EXPECT_NEAR(parameters("zero-100b"), 100e9, 2e9);
    EXPECT_NEAR(parameters("gpt2-10m"), 10e6, 1e6);
    EXPECT_NEAR(parameters("llama-10m"), 10e6, 1e6);
}

// Nothing is converted, clamped or guessed; the message has the file and the place in it.
TEST(TransformerModel, EveryMisfitIsAnErrorWithItsPlace) {
    const struct {
        const char* what;
        const char* key;
        Json value;
        std::initializer_list<const char*> parts;
    } rows[] = {
        {"another format", "format", "zeroproof cluster", {"/format", "zeroproof model"}},
        {"another version", "version", 2, {"/version", "2"}},
        {"an earlier version", "version", 0, {"/version", "0"}},
        {"a version of text", "version", "1", {"/version", "integer"}},
        {"a name of a number", "name", 3, {"/name", "string"}},
        {"a purpose of a list", "purpose", Json::array({"a"}), {"/purpose", "string"}},
        {"an unknown family", "family", "bert", {"/family", "\"bert\"", "gpt2, llama"}},
        {"no layers", "layers", 0, {"/layers", "0 is outside of 1"}},
        {"negative layers", "layers", -2, {"/layers", "-2 is outside of 1"}},
        {"more layers than any", "layers", 65537, {"/layers", "65537", "65536"}},
        {"half a layer", "layers", 1.5, {"/layers", "integer"}},
        {"layers of text", "layers", "2", {"/layers", "integer"}},
        {"no layers at all", "layers", nullptr, {"/layers", "integer"}},
        {"hidden of zero", "hidden", 0, {"/hidden", "0 is outside of 1"}},
        {"negative hidden", "hidden", -32, {"/hidden", "-32"}},
        {"hidden beyond any", "hidden", 1 << 25, {"/hidden", "33554432", "16777216"}},
        {"hidden beyond 63 bits", "hidden", 18446744073709551615u, {"/hidden", "1844674407370955"}},
        {"zero heads", "heads", 0, {"/heads", "0 is outside of 1"}},
        {"heads that do not divide", "heads", 5, {"/heads", "hidden is 32", "5"}},
        {"more heads than columns", "heads", 64, {"/heads", "hidden is 32", "64"}},
        {"a head of one column", "heads", 32, {"/heads", "even"}},
        {"zero key heads", "kv_heads", 0, {"/kv_heads", "0 is outside of 1"}},
        {"key heads that do not divide", "kv_heads", 3, {"/kv_heads", "heads is 4", "3"}},
        {"more key heads than heads", "kv_heads", 8, {"/kv_heads", "heads is 4", "8"}},
        {"feed-forward of zero", "feed_forward", 0, {"/feed_forward", "0 is outside of 1"}},
        {"feed-forward beyond any", "feed_forward", 1 << 25, {"/feed_forward", "16777216"}},
        {"an empty vocabulary", "vocabulary", 0, {"/vocabulary", "0 is outside of 1"}},
        {"a negative vocabulary", "vocabulary", -1, {"/vocabulary", "-1"}},
        {"no sequence", "sequence", 0, {"/sequence", "0 is outside of 1"}},
        {"a huge sequence", "sequence", 1ll << 40, {"/sequence", "1099511627776"}},
        {"negative dropout", "dropout", -0.1, {"/dropout", "at least 0"}},
        {"all dropped", "dropout", 1, {"/dropout", "less than 1"}},
        {"dropout of text", "dropout", "0.1", {"/dropout", "number"}},
        {"an unknown key", "hiden", 32, {"some.json: /", "hiden"}},
    };
    for (const auto& [what, key, value, parts] : rows) {
        SCOPED_TRACE(what);
        Json json = good();
        json[key] = value;
        const std::string error = error_of([&] { read(json); });
        EXPECT_NE(error.find("some.json"), std::string::npos) << error;
        for (const char* part : parts) EXPECT_NE(error.find(part), std::string::npos) << error;
    }
}

TEST(TransformerModel, EachMissingKeyIsNamed) {
    for (const char* key : {"format", "version", "name", "family", "layers", "hidden", "heads",
                            "feed_forward", "vocabulary", "sequence"}) {
        Json json = good();
        json.erase(key);
        const std::string error = error_of([&] { read(json); });
        EXPECT_NE(error.find("some.json"), std::string::npos) << error;
        EXPECT_NE(error.find("\"" + std::string(key) + "\" is missing"), std::string::npos)
            << error;
    }
}

// Where the number of key heads is left out, the fault is of the heads, and is said to be there.
TEST(TransformerModel, GroupedQueriesAreOfLlamaAlone) {
    Json json = good();
    json["family"] = "gpt2";
    const std::string error = error_of([&] { read(json); });
    EXPECT_NE(error.find("some.json: /kv_heads"), std::string::npos) << error;
    json.erase("kv_heads");
    EXPECT_EQ(read(json).kv_heads, 4u);
    json["heads"] = 32;  // of one column: gpt2 has no rotary positions
    EXPECT_EQ(read(json).head_size(), 1u);
    json["heads"] = 5;
    EXPECT_NE(error_of([&] { read(json); }).find("some.json: /heads"), std::string::npos);
}

TEST(TransformerModel, WhatIsNoModelIsRefused) {
    std::string twice = good().dump();
    twice.insert(1, R"("layers": 3, )");
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("layers: 2"), std::string("[]"),
          std::string("null"), std::string("3"), std::string("{}"), std::string("\xff\xfe"), twice,
          good().dump() + "}", "[" + good().dump() + "]"}) {
        const std::string error = error_of([&] { read_transformer_model(text, "some.json"); });
        EXPECT_EQ(error.find("some.json"), 0u) << error << " for " << text;
    }
    EXPECT_NE(error_of([&] { read_transformer_model(twice, "some.json"); }).find("\"layers\""),
              std::string::npos);
}

// No prefix of a file is a model: what was cut off would be a smaller one.
TEST(TransformerModel, EveryTruncationIsAnError) {
    const std::string text = good().dump();
    for (std::size_t length = 0; length < text.size(); ++length)
        EXPECT_THROW(read_transformer_model(text.substr(0, length), "some.json"), BadInput)
            << length;
}

// Catches a product of sizes that is computed in 32 bits: each size at its largest, alone. Doubles
// count up to 2^53 exactly, and beyond it to 2^-52 of the sum.
TEST(TransformerModel, TheLargestSizesAreCounted) {
    for (const char* key : {"layers", "hidden", "feed_forward", "vocabulary", "sequence"}) {
        Json json = good();
        json[key] = key == std::string("layers") ? 1 << 16 : 1 << 24;
        const TransformerModel m = read(json);
        const auto h = static_cast<double>(m.hidden);
        const auto f = static_cast<double>(m.feed_forward);
        // Two tables, norms, and of each layer q and the output, k and v with half the heads, and
        // three matrices of the feed-forward layer.
        const double expected = 2 * static_cast<double>(m.vocabulary) * h + h +
                                static_cast<double>(m.layers) * (3 * h * h + 3 * h * f + 2 * h);
        std::size_t sum = 0;
        for (const auto& parameter : planned_model(m, 1).parameters) sum += parameter.elements;
        EXPECT_DOUBLE_EQ(static_cast<double>(sum), expected) << key;
    }
}

class ModelOnDisk : public testing::Test {
  protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override { fs::remove_all(folder_); }
    fs::path folder_ = fs::path(testing::TempDir()) / "zeroproof_transformer_model_test";
};

TEST_F(ModelOnDisk, IsReadLikeAKnownOne) {
    const std::string file = folder_ / "mine.json";
    std::ofstream(file) << good().dump(2);
    EXPECT_EQ(load_transformer_model(file).name, "some");
    std::ofstream(file) << "{}";
    EXPECT_NE(error_of([&] { load_transformer_model(file); }).find(file), std::string::npos);
}

TEST_F(ModelOnDisk, OneThatIsNotThereIsAnErrorThatNamesTheKnown) {
    const std::string error = error_of([] { load_transformer_model("gpt2-tinny"); });
    for (const char* part : {"gpt2-tinny", "gpt2-tiny", "llama-small", "zero-100b"})
        EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_NE(error_of([&] { load_transformer_model(folder_); }).find(folder_), std::string::npos);
    EXPECT_NE(error_of([] { load_transformer_model(""); }), "no error");
}

}  // namespace
}  // namespace zeroproof::scenarios
