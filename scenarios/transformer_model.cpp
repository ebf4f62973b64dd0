#include "scenarios/transformer_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace zeroproof::scenarios {

namespace {

constexpr std::string_view kFormat = "zeroproof model";
constexpr int kVersion = 1;
// Beyond any model, so that no product of sizes leaves the range of 64 bits.
constexpr std::int64_t kMostSize = 1 << 24;
constexpr std::int64_t kMostLayers = 1 << 16;

std::size_t size(const JsonReader& document, std::string_view key, std::int64_t most = kMostSize) {
    return static_cast<std::size_t>(document.at(key).integer(1, most));
}

void require_divides(const JsonReader& document, std::string_view key, std::size_t whole,
                     std::string_view by, std::size_t parts) {
    if (whole % parts != 0)
        document.at(by).fail(
            fmt::format("{} is {}, which {} does not divide: choose a divisor", key, whole, parts));
}

}  // namespace

std::string_view name_of(TransformerFamily family) {
    return family == TransformerFamily::gpt2 ? "gpt2" : "llama";
}

TransformerModel read_transformer_model(std::string_view text, const std::string& file) {
    const Json json = parse_json(text, file);
    const JsonReader document(json, file);
    document.allow({"format", "version", "name", "purpose", "family", "layers", "hidden", "heads",
                    "kv_heads", "feed_forward", "vocabulary", "sequence", "dropout"});
    (void)document.at("format").choice({kFormat});
    (void)document.at("version").integer(kVersion, kVersion);
    TransformerModel model;
    model.name = document.at("name").text();
    if (document.has("purpose")) model.purpose = document.at("purpose").text();
    model.family = read_named<TransformerFamily>(document.at("family"), kTransformerFamilies);
    model.layers = size(document, "layers", kMostLayers);
    model.hidden = size(document, "hidden");
    model.heads = size(document, "heads");
    model.kv_heads = document.has("kv_heads") ? size(document, "kv_heads") : model.heads;
    model.feed_forward = size(document, "feed_forward");
    model.vocabulary = size(document, "vocabulary");
    model.sequence = size(document, "sequence");
    if (document.has("dropout")) model.dropout = document.at("dropout").number();
    if (!(model.dropout >= 0 && model.dropout < 1))
        document.at("dropout").fail("expected at least 0 and less than 1");
    require_divides(document, "hidden", model.hidden, "heads", model.heads);
    require_divides(document, "heads", model.heads, document.has("kv_heads") ? "kv_heads" : "heads",
                    model.kv_heads);
    if (!model.is_gpt2() && model.head_size() % 2 != 0)
        document.at("heads").fail(fmt::format(
            "{} heads of {} elements: rotary positions turn pairs, so that a head needs "
            "an even number",
            model.heads, model.head_size()));
    if (model.is_gpt2() && model.kv_heads != model.heads)
        document.at("kv_heads").fail("a model of the family gpt2 has as many as heads");
    return model;
}

Json sizes_of(const TransformerModel& model) {
    return {{"family", name_of(model.family)}, {"layers", model.layers},
            {"hidden", model.hidden},          {"heads", model.heads},
            {"kv_heads", model.kv_heads},      {"feed_forward", model.feed_forward},
            {"vocabulary", model.vocabulary},  {"sequence", model.sequence},
            {"dropout", model.dropout}};
}

TransformerModel load_transformer_model(const std::string& name_or_file) {
    std::string known;
    for (const ModelFile& file : model_files()) {
        const std::string_view stem = file.name.substr(0, file.name.rfind('.'));
        if (stem == name_or_file) return read_transformer_model(file.text, std::string(file.name));
        known += (known.empty() ? "" : ", ") + std::string(stem);
    }
    if (!std::filesystem::exists(name_or_file))
        throw BadInput(
            fmt::format("{}: neither a file nor a known model; known is: {}", name_or_file, known));
    return read_transformer_model(read_text_file(name_or_file), name_or_file);
}

}  // namespace zeroproof::scenarios
