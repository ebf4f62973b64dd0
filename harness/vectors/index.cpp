#include "harness/vectors/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/protocol/untrusted_file.h"
#include "harness/vectors/sha256.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/clause.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using scenarios::BadInput;
using scenarios::Json;
using scenarios::JsonReader;

constexpr std::uint64_t kMostIndexBytes = std::uint64_t{256} << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr int kMostRanks = 64;
constexpr int kMostPartIndex = 9999;

Json file_to_json(const VectorFile& file) {
    return {{"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}};
}

Json parts_to_json(const std::vector<VectorPart>& parts) {
    Json json = Json::array();
    for (const VectorPart& part : parts)
        json.push_back({{"launch", part.launch}, {"index", part.index}});
    return json;
}

Json launch_to_json(const VectorLaunch& launch) {
    return {{"name", launch.name}, {"ranks", launch.ranks}, {"cases", file_to_json(launch.cases)}};
}

Json vector_to_json(const Vector& vector) {
    Json json{{"id", vector.id},
              {"flags", vector.flags},
              {"clauses", vector.clauses},
              {"sources", vector.sources},
              {"parts", parts_to_json(vector.parts)}};
    if (vector.twin)
        json["twin"] = {{"differs_in", vector.twin->differs_in},
                        {"parts", parts_to_json(vector.twin->parts)}};
    json["expected"] = vector.expected;
    json["files"] = Json::array();
    for (const VectorFile& file : vector.files) json["files"].push_back(file_to_json(file));
    return json;
}

std::string plain_name(const JsonReader& name) {
    const std::string text = name.text();
    if (text.empty() || text == "." || text == ".." || text.find('/') != std::string::npos)
        name.fail(fmt::format("\"{}\" is no plain name", text));
    return text;
}

std::string plain_path(const JsonReader& path) {
    const std::string text = path.text();
    const fs::path parts(text);
    const bool is_plain = !text.empty() && parts.is_relative() &&
                          std::ranges::none_of(parts, [](const fs::path& part) {
                              return part.empty() || part == "." || part == "..";
                          });
    if (!is_plain) path.fail(fmt::format("\"{}\" is no plain path within the folder", text));
    return text;
}

VectorFile read_file(const JsonReader& file) {
    file.allow({"path", "bytes", "sha256"});
    VectorFile read{plain_path(file.at("path")),
                    static_cast<std::uint64_t>(file.at("bytes").integer(0, kMostBytes)),
                    file.at("sha256").text()};
    if (read.sha256.size() != 64 ||
        read.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
        file.at("sha256").fail("expected 64 lower-case hexadecimal digits");
    return read;
}

std::vector<VectorPart> read_parts(const JsonReader& parts) {
    std::vector<VectorPart> read;
    for (const JsonReader& part : parts.items()) {
        part.allow({"launch", "index"});
        read.push_back({plain_name(part.at("launch")),
                        static_cast<std::size_t>(part.at("index").integer(0, kMostPartIndex))});
    }
    if (read.empty() || read.size() > 2) parts.fail("expected one or two parts");
    return read;
}

std::vector<std::string> read_texts(const JsonReader& list) {
    std::vector<std::string> texts;
    for (const JsonReader& item : list.items()) texts.push_back(item.text());
    return texts;
}

VectorLaunch read_launch(const JsonReader& launch) {
    launch.allow({"name", "ranks", "cases"});
    return {plain_name(launch.at("name")),
            static_cast<int>(launch.at("ranks").integer(1, kMostRanks)),
            read_file(launch.at("cases"))};
}

Vector read_vector(const JsonReader& vector) {
    vector.allow({"id", "flags", "clauses", "sources", "parts", "twin", "expected", "files"});
    Vector read;
    read.id = vector.at("id").text();
    read.flags = read_texts(vector.at("flags"));
    read.clauses = read_texts(vector.at("clauses"));
    read.sources = read_texts(vector.at("sources"));
    read.parts = read_parts(vector.at("parts"));
    if (vector.has("twin")) {
        const JsonReader twin = vector.at("twin");
        twin.allow({"differs_in", "parts"});
        read.twin = {twin.at("differs_in").text(), read_parts(twin.at("parts"))};
    }
    read.expected = plain_path(vector.at("expected"));
    for (const JsonReader& file : vector.at("files").items()) read.files.push_back(read_file(file));
    return read;
}

// In the order in which they come, each once.
void add_new(std::vector<std::string>& texts, std::string_view text) {
    if (std::ranges::find(texts, text) == texts.end()) texts.emplace_back(text);
}

// Calls visit for each part of a text that a separator divides, without spaces around it.
template <typename Visit>
void for_each_between(std::string_view text, char separator, Visit&& visit) {
    while (!text.empty()) {
        std::string_view part = text.substr(0, text.find(separator));
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        if (!part.empty()) visit(part);
    }
}

template <typename Item, typename ToJson>
std::string lines_of(const std::vector<Item>& items, ToJson&& to_json) {
    std::string text;
    for (const Item& item : items)
        text += (text.empty() ? "" : ",\n") +
                to_json(item).dump(-1, ' ', false, Json::error_handler_t::replace);
    return text;
}

}  // namespace

Vector describe(const suites::Case& c) {
    Vector vector;
    vector.id = c.id;
    for (const suites::Clause& clause : suites::all_clauses()) {
        if (!clause.applies(c)) continue;
        vector.clauses.emplace_back(clause.name);
        for_each_between(clause.fault_classes, ',',
                         [&](std::string_view flag) { add_new(vector.flags, flag); });
        for_each_between(clause.source, ';',
                         [&](std::string_view source) { add_new(vector.sources, source); });
    }
    std::ranges::sort(vector.flags);
    std::ranges::sort(vector.sources);
    return vector;
}

std::string to_text(const VectorIndex& index) {
    return fmt::format(
        "{{\"schema\":\"{}\",\"version\":\"{}\",\n\"launches\":[\n{}\n],\n\"vectors\":[\n{}\n]}}\n",
        kVectorsSchema, index.version, lines_of(index.launches, launch_to_json),
        lines_of(index.vectors, vector_to_json));
}

VectorIndex read_index(const fs::path& folder) {
    const UntrustedFile file = UntrustedFile::demand(folder, kIndexFile, kMostIndexBytes);
    const Json json = scenarios::parse_json(file.text(), file.name());
    const JsonReader reader(json, file.name());
    const JsonReader schema = reader.at("schema");
    if (schema.text() != kVectorsSchema)
        schema.fail(fmt::format("\"{}\" where \"{}\" is known", schema.text(), kVectorsSchema));
    reader.allow({"schema", "version", "launches", "vectors"});
    VectorIndex index;
    index.version = reader.at("version").text();
    std::set<std::string> names;
    for (const JsonReader& launch : reader.at("launches").items()) {
        index.launches.push_back(read_launch(launch));
        if (!names.insert(index.launches.back().name).second)
            launch.at("name").fail("stands twice");
    }
    std::set<std::string> ids;
    for (const JsonReader& vector : reader.at("vectors").items()) {
        index.vectors.push_back(read_vector(vector));
        if (!ids.insert(index.vectors.back().id).second) vector.at("id").fail("stands twice");
    }
    return index;
}

VectorFile measure_file(const fs::path& folder, std::string path) {
    const UntrustedFile file = UntrustedFile::demand(folder, path, kMostBytes);
    return {std::move(path), file.size(), sha256_of(file)};
}

void check_files(const fs::path& folder, const VectorIndex& index) {
    const auto check = [&](const VectorFile& file, const std::string& whose) {
        const auto opened = UntrustedFile::open(folder, file.path, kMostBytes);
        if (!opened)
            throw BadInput(fmt::format("{}: is missing, and {} needs it",
                                       (folder / file.path).string(), whose));
        // The size first: it tells at once of a file that was cut off.
        const std::string differs =
            opened->size() != file.bytes
                ? fmt::format("has {} bytes, not the {}", opened->size(), file.bytes)
            : sha256_of(*opened) != file.sha256 ? "has not the SHA-256"
                                                : "";
        if (!differs.empty())
            throw BadInput(
                fmt::format("{}: was changed after it was made: it {} that {} says; "
                            "{} needs it",
                            opened->name(), differs, kIndexFile, whose));
    };
    for (const VectorLaunch& launch : index.launches)
        check(launch.cases, fmt::format("launch {}", launch.name));
    for (const Vector& vector : index.vectors)
        for (const VectorFile& file : vector.files)
            check(file, fmt::format("vector '{}'", vector.id));
}

}  // namespace zeroproof::harness
