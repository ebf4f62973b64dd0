// A training record from a file. docs/train.md has the form, docs/train.schema.json the schema.
#pragma once

#include <string>
#include <string_view>

#include "harness/train/train_record.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

inline constexpr const char* kTrainFormat = "zeroproof training";
// Changes when a field changes its meaning or goes.
inline constexpr int kTrainVersion = 1;

// Whether a document says of itself that it is one.
bool is_train_json(const scenarios::Json& document);

// The document may be anybody's: throws scenarios::BadInput that names `file` and the place in it.
// What follows from the rest is not read: the formulas' bytes and the tokens a second.
TrainRecord read_train_json(const scenarios::Json& document, const std::string& file);

}  // namespace zeroproof::harness
