// The registry of clauses and the documents that are bound to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "scenarios/json_reader.h"
#include "suites/conformance/clause.h"
#include "suites/conformance/clause_document.h"
#include "suites/conformance/family.h"

namespace zeroproof::suites {
namespace {

const std::filesystem::path kRoot = ZEROPROOF_SOURCE_DIR;
constexpr std::string_view kSpecification = "docs/specification.md";

std::string read(std::string_view file) {
    return scenarios::read_text_file((kRoot / file).string());
}

// With every run of white space as one space, so that lines may break anywhere.
std::string unwrapped(const std::string& text) {
    return std::regex_replace(text, std::regex("\\s+"), " ");
}

std::set<std::string> found(const std::string& text, const std::regex& pattern, int group) {
    std::set<std::string> all;
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
        all.insert((*at)[static_cast<std::size_t>(group)]);
    return all;
}

TEST(Registry, ClausesDocumentIsWhatTheRegistrySays) {
    EXPECT_TRUE(read("docs/clauses.md") == clauses_markdown())
        << "docs/clauses.md is out of date: zeroproof clauses --markdown > docs/clauses.md";
}

TEST(Registry, NamesAreUniqueUpperCaseWordsWithDots) {
    const std::regex pattern("[A-Z]+(\\.[A-Z0-9]+)+");
    std::set<std::string_view> names;
    for (const Clause& clause : all_clauses()) {
        EXPECT_TRUE(std::regex_match(std::string(clause.name), pattern)) << clause.name;
        EXPECT_TRUE(names.insert(clause.name).second) << clause.name << " stands twice";
        EXPECT_EQ(find_clause(clause.name), &clause);
        EXPECT_FALSE(clause.sentence.empty()) << clause.name;
        EXPECT_TRUE(clause.sentence.ends_with('.')) << clause.name;
        EXPECT_FALSE(clause.source.empty()) << clause.name;
        EXPECT_FALSE(clause.fault_classes.empty()) << clause.name;
    }
    EXPECT_TRUE(std::ranges::is_sorted(all_clauses(), {}, &Clause::name));
    EXPECT_EQ(find_clause("NO.SUCH"), nullptr);
}

TEST(Registry, SpecificationHasEachClauseWithItsExactSentenceAndNoOther) {
    const std::string specification = read(kSpecification);
    const std::string text = unwrapped(specification);
    std::set<std::string> names;
    for (const Clause& clause : all_clauses()) {
        names.insert(std::string(clause.name));
        const std::string entry =
            "- " + std::string(clause.name) + ": **" + std::string(clause.sentence) + "**";
        EXPECT_NE(text.find(entry), std::string::npos) << "missing or different: " << entry;
    }
    for (const std::string& name :
         found(specification, std::regex("\\b[A-Z]{2,}(\\.[A-Z]{2,})+\\b"), 0))
        EXPECT_TRUE(names.contains(name)) << name << " is no clause";
}

TEST(Registry, SectionsThatSourcesNameExist) {
    const std::string specification = read(kSpecification);
    const std::regex reference("docs/specification\\.md, ([^;]+)");
    for (const Clause& clause : all_clauses())
        for (const std::string& section : found(std::string(clause.source), reference, 1))
            EXPECT_NE(specification.find("\n## " + section + "\n"), std::string::npos)
                << clause.name << " names the section " << section;
}

TEST(Registry, EveryClauseHasACaseAndEveryCaseAClause) {
    const std::vector<Case> cases = all_cases();
    std::set<std::string> ids;
    for (const Case& c : cases) {
        EXPECT_TRUE(std::ranges::any_of(all_clauses(), [&](const Clause& clause) {
            return clause.applies(c);
        })) << c.id;
        EXPECT_TRUE(ids.insert(c.id).second) << c.id << " stands twice";
    }
    for (const Clause& clause : all_clauses())
        EXPECT_TRUE(std::ranges::any_of(cases, clause.applies)) << clause.name;
}

TEST(Registry, EveryClauseIsNamedAsTheKillerOfAMutant) {
    std::set<std::string> killers;
    const auto folder = kRoot / "suites/conformance/mutants";
    ASSERT_TRUE(std::filesystem::is_directory(folder)) << folder;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".json") continue;
        const std::string file = entry.path().string();
        const scenarios::Json document =
            scenarios::parse_json(scenarios::read_text_file(file), file);
        for (const scenarios::JsonReader& mutant :
             scenarios::JsonReader(document, file).at("mutants").items()) {
            const scenarios::JsonReader killed_by = mutant.at("killed_by");
            EXPECT_NE(find_clause(killed_by.text()), nullptr)
                << file << ": no clause is named " << killed_by.text();
            killers.insert(killed_by.text());
        }
    }
    std::string idle;
    for (const Clause& clause : all_clauses())
        if (!killers.contains(std::string(clause.name))) idle += " " + std::string(clause.name);
    EXPECT_EQ(idle, "") << "these kill no mutant: nothing shows that they can fail";
}

TEST(Registry, ExplanationNamesSentenceCasesAndCommand) {
    for (const char* name : {"CHECKPOINT.CONTINUE", "GRADIENT.MEAN", "TRANSPORT.PLACEMENT"}) {
        const Clause& clause = *find_clause(name);
        const std::string text = explain(clause);
        EXPECT_TRUE(text.starts_with(std::string(clause.name) + "\n"));
        for (const std::string_view part : {clause.sentence, clause.source})
            EXPECT_NE(unwrapped(text).find(part), std::string::npos) << text;
        EXPECT_NE(text.find(std::string("zeroproof verify reference --clause ") + name),
                  std::string::npos);
    }
    EXPECT_NE(explain(*find_clause("TRANSPORT.PLACEMENT")).find("\n    transport ("),
              std::string::npos);
}

}  // namespace
}  // namespace zeroproof::suites
