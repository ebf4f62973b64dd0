// Strict reading of JSON that somebody else wrote: what is unknown, missing or of another type is
// an error that names the file and the place in it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::scenarios {

using Json = nlohmann::ordered_json;

class BadInput : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Throws BadInput with line and column, also for a key that stands twice in an object.
Json parse_json(std::string_view text, const std::string& file);
// Throws BadInput if the file cannot be read.
std::string read_text_file(const std::string& file);

// A place in a document, as "cases.json: /parameters/2/shape".
class JsonReader {
  public:
    JsonReader(const Json& json, std::string file) : json_(json), file_(std::move(file)) {}

    bool has(std::string_view key) const;
    // Throws BadInput if there is none.
    JsonReader at(std::string_view key) const;
    // The elements of an array.
    std::vector<JsonReader> items() const;
    // Throws BadInput for a key that is none of these.
    void allow(std::initializer_list<std::string_view> keys) const;

    std::string text() const;
    bool boolean() const;
    double number() const;
    std::int64_t integer(std::int64_t lowest, std::int64_t highest) const;
    // Which of `names` it is.
    std::size_t choice(std::initializer_list<std::string_view> names) const;

    const Json& json() const { return json_; }
    [[noreturn]] void fail(const std::string& why) const;

  private:
    JsonReader(const Json& json, std::string file, std::string pointer)
        : json_(json), file_(std::move(file)), pointer_(std::move(pointer)) {}

    const Json& json_;
    std::string file_;
    std::string pointer_;
};

// The value of an enumeration that has the name, by its `name_of`. Throws BadInput.
template <typename Enum>
Enum read_named(const JsonReader& name, std::size_t values) {
    const std::string wanted = name.text();
    std::string known;
    for (std::size_t i = 0; i < values; ++i) {
        const auto value = static_cast<Enum>(i);
        if (name_of(value) == wanted) return value;
        known += (known.empty() ? "" : ", ") + std::string(name_of(value));
    }
    name.fail("unknown \"" + wanted + "\"; known is: " + known);
}

}  // namespace zeroproof::scenarios
