// The sizes of a transformer, as data: scenarios/models/ has a file for each that is known.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/json_reader.h"

namespace zeroproof::scenarios {

enum class TransformerFamily { gpt2, llama };
inline constexpr std::size_t kTransformerFamilies = 2;
std::string_view name_of(TransformerFamily family);

struct TransformerModel {
    std::string name;
    std::string purpose;
    TransformerFamily family = TransformerFamily::gpt2;
    std::size_t layers = 1;
    std::size_t hidden = 1;
    std::size_t heads = 1;
    std::size_t kv_heads = 1;
    std::size_t feed_forward = 1;
    std::size_t vocabulary = 1;
    std::size_t sequence = 1;  // tokens of a sample
    double dropout = 0;

    std::size_t head_size() const { return hidden / heads; }
    bool is_gpt2() const { return family == TransformerFamily::gpt2; }
};

struct ModelFile {
    std::string_view name;
    std::string_view text;
};
// Those in models/, put into the program when it is built.
const std::vector<ModelFile>& model_files();

// Throws BadInput, naming the file and the place in it.
TransformerModel read_transformer_model(std::string_view text, const std::string& file);
// What makes a model another one, by the keys of a file: family, sizes and dropout.
Json sizes_of(const TransformerModel& model);
// A known model by its name, or else a file. Throws BadInput, naming the known ones.
TransformerModel load_transformer_model(const std::string& name_or_file);

}  // namespace zeroproof::scenarios
