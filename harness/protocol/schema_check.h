// For tests: whether JSON obeys a schema of docs/.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "scenarios/json_reader.h"

namespace zeroproof::harness {

// A file of docs/.
inline scenarios::Json schema_document(const std::string& name) {
    const std::string file = std::string(ZEROPROOF_SOURCE_DIR) + "/docs/" + name;
    return scenarios::parse_json(scenarios::read_text_file(file), file);
}

inline bool is_of_type(const scenarios::Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "null") return value.is_null();
    ADD_FAILURE() << "unknown type " << type;
    return false;
}

// Whether a value obeys a schema, of the keywords that ours use; others are a failure.
class Schema {
  public:
    using Json = scenarios::Json;

    explicit Schema(const std::string& name) : root_(schema_document(name)) {}

    bool accepts(const Json& value) const { return accepts(root_, value); }
    const Json& root() const { return root_; }

  private:
    bool accepts(const Json& schema, const Json& value) const {
        return std::ranges::all_of(schema.items(), [&](const auto& keyword) {
            return obeys(schema, keyword.key(), keyword.value(), value);
        });
    }

    bool obeys(const Json& schema, const std::string& keyword, const Json& rule,
               const Json& value) const {
        if (keyword == "$schema" || keyword == "title" || keyword == "description" ||
            keyword == "$defs")
            return true;
        if (keyword == "$ref") return obeys_reference(rule.get<std::string>(), value);
        if (keyword == "const") return value == rule;
        if (keyword == "enum") return std::ranges::find(rule, value) != rule.end();
        if (keyword == "type")
            return rule.is_array()
                       ? std::ranges::any_of(
                             rule, [&](const Json& type) { return is_of_type(value, type); })
                       : is_of_type(value, rule);
        if (keyword == "oneOf")
            return std::ranges::count_if(rule,
                                         [&](const Json& one) { return accepts(one, value); }) == 1;
        if (keyword == "minimum") return !value.is_number() || value >= rule;
        if (keyword == "maximum") return !value.is_number() || value <= rule;
        if (keyword == "exclusiveMinimum") return !value.is_number() || value > rule;
        if (keyword == "minLength")
            return !value.is_string() || value.get<std::string>().size() >= rule;
        if (keyword == "maxLength")
            return !value.is_string() || value.get<std::string>().size() <= rule;
        if (keyword == "minItems") return !value.is_array() || value.size() >= rule;
        if (keyword == "items")
            return !value.is_array() || std::ranges::all_of(value, [&](const Json& item) {
                return accepts(rule, item);
            });
        if (keyword == "required")
            return !value.is_object() || std::ranges::all_of(rule, [&](const Json& key) {
                return value.contains(key.get<std::string>());
            });
        if (keyword == "properties") return obeys_properties(rule, value);
        if (keyword == "additionalProperties")
            return rule != false || !value.is_object() ||
                   std::ranges::all_of(value.items(), [&](const auto& item) {
                       return schema.at("properties").contains(item.key());
                   });
        ADD_FAILURE() << "unknown keyword " << keyword;
        return false;
    }

    bool obeys_reference(const std::string& reference, const Json& value) const {
        if (reference.starts_with("#"))
            return accepts(root_.at(Json::json_pointer(reference.substr(1))), value);
        return Schema(reference).accepts(value);
    }

    bool obeys_properties(const Json& properties, const Json& value) const {
        if (!value.is_object()) return true;
        return std::ranges::all_of(properties.items(), [&](const auto& property) {
            return !value.contains(property.key()) ||
                   accepts(property.value(), value.at(property.key()));
        });
    }

    Json root_;
};

inline std::set<std::string> keys_of(const scenarios::Json& object) {
    std::set<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.insert(key);
    return keys;
}
inline std::set<std::string> texts_of(const scenarios::Json& array) {
    return {array.begin(), array.end()};
}

// Of the first `count` values of an enumeration.
template <typename Enum>
std::set<std::string> names(std::size_t count) {
    std::set<std::string> all;
    for (std::size_t i = 0; i < count; ++i) all.emplace(name_of(static_cast<Enum>(i)));
    return all;
}

}  // namespace zeroproof::harness
