#include "harness/mutants/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/json_reader.h"
#include "suites/conformance/clause.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using scenarios::BadInput;
using scenarios::JsonReader;

constexpr std::array kMutableLayers{"memory", "collectives", "reference"};

std::string non_empty(const JsonReader& text) {
    std::string value = text.text();
    if (value.empty()) text.fail("is empty");
    return value;
}

std::size_t occurrences(const std::string& text, const std::string& what) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++count;
    return count;
}

// Read from the place that names it, so that a bad one is told with that place.
std::string source_text(const JsonReader& file, const fs::path& source_tree) {
    const fs::path path = non_empty(file);
    const auto is_up = [](const fs::path& part) { return part == ".." || part == "."; };
    if (path.is_absolute() || std::ranges::any_of(path, is_up) || path.extension() != ".cpp")
        file.fail(fmt::format("\"{}\" is no .cpp file relative to the source tree", path.string()));
    if (std::ranges::find(kMutableLayers, path.begin()->string()) == kMutableLayers.end())
        file.fail(
            fmt::format("\"{}\" is in none of memory/, collectives/, reference/: whoever "
                        "judges stays as it is",
                        path.string()));
    if (!fs::is_regular_file(source_tree / path))
        file.fail(fmt::format("\"{}\" is no file of the source tree {}", path.string(),
                              source_tree.string()));
    return scenarios::read_text_file((source_tree / path).string());
}

Mutant read_mutant(const JsonReader& object, const std::string& catalogue,
                   const fs::path& source_tree) {
    object.allow({"name", "class", "file", "find", "replace", "killed_by", "why"});
    Mutant mutant{.name = non_empty(object.at("name")),
                  .fault_class = non_empty(object.at("class")),
                  .file = object.at("file").text(),
                  .find = non_empty(object.at("find")),
                  .replace = object.at("replace").text(),
                  .killed_by = object.at("killed_by").text(),
                  .why = non_empty(object.at("why")),
                  .catalogue = catalogue};
    if (suites::find_clause(mutant.killed_by) == nullptr)
        object.at("killed_by").fail(fmt::format("no clause is named \"{}\"", mutant.killed_by));
    if (mutant.find == mutant.replace) object.at("replace").fail("changes nothing");
    const std::string source = source_text(object.at("file"), source_tree);
    const std::size_t found = occurrences(source, mutant.find);
    if (found != 1)
        object.at("find").fail(fmt::format("stands {} times in {}, not once", found, mutant.file));
    return mutant;
}

void require_distinct_names(const std::vector<Mutant>& mutants) {
    std::set<std::string> names;
    for (const Mutant& mutant : mutants)
        if (!names.insert(mutant.name).second)
            throw BadInput(fmt::format("{}: /mutants: two mutants are named \"{}\"",
                                       mutant.catalogue, mutant.name));
}

}  // namespace

std::vector<Mutant> read_catalogue(std::string_view text, const std::string& catalogue,
                                   const fs::path& source_tree) {
    const scenarios::Json document = scenarios::parse_json(text, catalogue);
    const JsonReader reader(document, catalogue);
    reader.allow({"mutants"});
    std::vector<Mutant> mutants;
    for (const JsonReader& object : reader.at("mutants").items())
        mutants.push_back(read_mutant(object, catalogue, source_tree));
    require_distinct_names(mutants);
    return mutants;
}

std::vector<Mutant> read_catalogues(const std::vector<fs::path>& files,
                                    const fs::path& source_tree) {
    std::vector<Mutant> all;
    for (const fs::path& file : files)
        for (Mutant& mutant :
             read_catalogue(scenarios::read_text_file(file.string()), file.string(), source_tree))
            all.push_back(std::move(mutant));
    require_distinct_names(all);
    return all;
}

std::vector<fs::path> committed_catalogues(const fs::path& source_tree) {
    const fs::path folder = source_tree / "suites" / "conformance" / "mutants";
    std::vector<fs::path> files;
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

std::vector<Mutant> one_a_clause(const std::vector<Mutant>& mutants, std::uint64_t seed) {
    std::map<std::string, std::vector<std::size_t>> by_clause;
    for (std::size_t i = 0; i < mutants.size(); ++i) by_clause[mutants[i].killed_by].push_back(i);
    std::set<std::size_t> places;
    for (const auto& [clause, of_clause] : by_clause)
        places.insert(of_clause[seed % of_clause.size()]);
    std::vector<Mutant> some;
    for (const std::size_t place : places) some.push_back(mutants[place]);
    return some;
}

std::string mutated_source(const Mutant& mutant, const fs::path& source_tree) {
    std::string text = scenarios::read_text_file((source_tree / mutant.file).string());
    const std::size_t at = text.find(mutant.find);
    if (at == std::string::npos)
        throw BadInput(fmt::format("{}: \"{}\" no longer stands in {}", mutant.catalogue,
                                   mutant.name, mutant.file));
    return text.replace(at, mutant.find.size(), mutant.replace);
}

}  // namespace zeroproof::harness
