#include "scenarios/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

namespace zeroproof::scenarios {

Json parse_json(std::string_view text, const std::string& file) {
    std::vector<std::set<std::string>> keys;
    std::optional<std::string> twice;
    // Nobody writes so deep by hand, and what reads the document later recurses.
    constexpr int kDeepest = 64;
    // An object searches for each key in all those before: many would take hours.
    constexpr std::size_t kMostKeys = 1000;
    const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth > kDeepest)
            throw BadInput(fmt::format("{}: nested more than {} deep", file, kDeepest));
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        if (event == Json::parse_event_t::object_end) keys.pop_back();
        if (event == Json::parse_event_t::key && !keys.back().insert(parsed).second) twice = parsed;
        if (event == Json::parse_event_t::key && keys.back().size() > kMostKeys)
            throw BadInput(fmt::format("{}: more than {} keys in one object", file, kMostKeys));
        return true;
    };
    try {
        Json json = Json::parse(text, callback);
        if (twice)
            throw BadInput(
                fmt::format("{}: the key \"{}\" stands twice in one object", file, *twice));
        return json;
    } catch (const Json::exception& error) {  // malformed, or a number beyond any double
        throw BadInput(fmt::format("{}: {}", file, error.what()));
    }
}

std::string read_text_file(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    if (stream && stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
    if (stream.bad() || !stream.is_open() || text.fail())
        throw BadInput(fmt::format("{}: cannot be read", file));
    return text.str();
}

bool JsonReader::has(std::string_view key) const {
    return json_.is_object() && json_.contains(std::string(key));
}

JsonReader JsonReader::at(std::string_view key) const {
    if (!json_.is_object()) fail("expected an object");
    if (!has(key)) fail(fmt::format("the key \"{}\" is missing", key));
    return {json_.at(std::string(key)), file_, fmt::format("{}/{}", pointer_, key)};
}

std::vector<JsonReader> JsonReader::items() const {
    if (!json_.is_array()) fail("expected an array");
    std::vector<JsonReader> items;
    for (std::size_t i = 0; i < json_.size(); ++i)
        items.push_back({json_[i], file_, fmt::format("{}/{}", pointer_, i)});
    return items;
}

void JsonReader::allow(std::initializer_list<std::string_view> keys) const {
    if (!json_.is_object()) fail("expected an object");
    for (const auto& [key, unused] : json_.items())
        if (std::ranges::find(keys, key) == keys.end())
            fail(fmt::format("unknown key \"{}\"; known are {}", key, fmt::join(keys, ", ")));
}

std::string JsonReader::text() const {
    if (!json_.is_string()) fail("expected a string");
    return json_.get<std::string>();
}

bool JsonReader::boolean() const {
    if (!json_.is_boolean()) fail("expected true or false");
    return json_.get<bool>();
}

double JsonReader::number() const {
    if (!json_.is_number()) fail("expected a number");
    const auto value = json_.get<double>();
    if (!std::isfinite(value)) fail("expected a finite number");
    return value;
}

std::int64_t JsonReader::integer(std::int64_t lowest, std::int64_t highest) const {
    if (!json_.is_number_integer()) fail("expected an integer");
    const bool huge = json_.is_number_unsigned() &&
                      json_.get<std::uint64_t>() > static_cast<std::uint64_t>(highest);
    if (huge || json_.get<std::int64_t>() < lowest || json_.get<std::int64_t>() > highest)
        fail(fmt::format("{} is outside of {} to {}", json_.dump(), lowest, highest));
    return json_.get<std::int64_t>();
}

std::size_t JsonReader::choice(std::initializer_list<std::string_view> names) const {
    const std::string name = text();
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
        fail(fmt::format("unknown \"{}\"; known are {}", name, fmt::join(names, ", ")));
    return static_cast<std::size_t>(at - names.begin());
}

void JsonReader::fail(const std::string& why) const {
    throw BadInput(fmt::format("{}: {}: {}", file_, pointer_.empty() ? "/" : pointer_, why));
}

}  // namespace zeroproof::scenarios
