// JSON that is small, and still to be read, searched and compared by lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace zeroproof::harness {

// A line for each key of the object, and for each entry of the lists in it. Text that is not UTF-8
// must not cost the whole record: what is none becomes U+FFFD.
std::string json_by_lines(const nlohmann::ordered_json& root);

}  // namespace zeroproof::harness
