#include "harness/writers/json_lines.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace zeroproof::harness {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_by_lines(const Json& root) {
    std::string out = "{";
    std::string_view before = "\n";
    for (const auto& [key, value] : root.items()) {
        out += before;
        out += dump(Json(key)) + ": ";
        before = ",\n";
        if (!value.is_array() || value.empty()) {
            out += dump(value);
            continue;
        }
        std::string_view before_entry = "[\n";
        for (const Json& entry : value) {
            out += before_entry;
            out += dump(entry);
            before_entry = ",\n";
        }
        out += "\n]";
    }
    return out + "\n}\n";
}

}  // namespace zeroproof::harness
