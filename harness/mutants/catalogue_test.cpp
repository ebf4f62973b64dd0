// Catalogues that are wrong, and where their readers say so.
#include "harness/mutants/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/clause.h"

namespace zeroproof::harness {
namespace {

using scenarios::BadInput;
using scenarios::Json;

void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no\n" << part;
}

// A source tree with sources of a few lines.
class CatalogueTest : public testing::Test {
  protected:
    CatalogueTest() {
        std::filesystem::create_directories(folder_.path() / "reference");
        std::filesystem::create_directories(folder_.path() / "suites");
        std::ofstream(folder_.path() / "reference/a.cpp") << "one();\ntwo();\ntwo();\nthree();\n";
        std::ofstream(folder_.path() / "reference/a.h") << "one();\n";
        std::ofstream(folder_.path() / "suites/b.cpp") << "one();\n";
    }

    static Json good() {
        return {{"name", "FC01-a"}, {"class", "FC01"},      {"file", "reference/a.cpp"},
                {"find", "one();"}, {"replace", "none();"}, {"killed_by", "GRADIENT.MEAN"},
                {"why", "Because."}};
    }
    std::vector<Mutant> read(const std::vector<Json>& mutants) {
        return read_catalogue(Json{{"mutants", mutants}}.dump(), "faults.json", folder_.path());
    }
    std::string refusal(const std::vector<Json>& mutants) {
        try {
            read(mutants);
        } catch (const BadInput& error) {
            return error.what();
        }
        return "none";
    }
    std::string refusal_with(const std::string& key, const Json& value) {
        Json mutant = good();
        mutant[key] = value;
        return refusal({mutant});
    }

    TemporaryFolder folder_;
};

TEST_F(CatalogueTest, ReadsWhatIsRight) {
    const std::vector<Mutant> mutants = read({good()});
    ASSERT_EQ(mutants.size(), 1u);
    EXPECT_EQ(mutants[0].name, "FC01-a");
    EXPECT_EQ(mutants[0].killed_by, "GRADIENT.MEAN");
    EXPECT_EQ(mutated_source(mutants[0], folder_.path()), "none();\ntwo();\ntwo();\nthree();\n");
}

TEST_F(CatalogueTest, FindsSeveralLines) {
    Json mutant = good();
    mutant["find"] = "two();\nthree();";
    mutant["replace"] = "";
    EXPECT_EQ(mutated_source(read({mutant})[0], folder_.path()), "one();\ntwo();\n\n");
}

TEST_F(CatalogueTest, NamesFileAndPlaceOfEachFault) {
    expect_has(refusal_with("kill", "x"), "faults.json: /mutants/0: unknown key");
    Json without = good();
    without.erase("why");
    expect_has(refusal({without}), "/mutants/0: the key \"why\" is missing");
    expect_has(refusal_with("killed_by", "GRADIENT.MEDIAN"),
               "/mutants/0/killed_by: no clause is named \"GRADIENT.MEDIAN\"");
    expect_has(refusal_with("name", ""), "/mutants/0/name: is empty");
    expect_has(refusal_with("find", ""), "/mutants/0/find: is empty");
    expect_has(refusal_with("find", 1), "/mutants/0/find: expected a string");
    expect_has(refusal_with("replace", "one();"), "/mutants/0/replace: changes nothing");
    expect_has(refusal({good(), good()}), "two mutants are named \"FC01-a\"");
}

TEST_F(CatalogueTest, TextThatIsNotThereExactlyOnceIsRefused) {
    expect_has(refusal_with("find", "four();"), "/mutants/0/find: stands 0 times");
    expect_has(refusal_with("find", "two();"), "/mutants/0/find: stands 2 times");
    expect_has(refusal_with("find", "one();\nthree();"), "stands 0 times");
}

TEST_F(CatalogueTest, OnlySourcesOfTheLayersThatAreJudgedMayChange) {
    for (const std::string file : {"/etc/a.cpp", "reference/../reference/a.cpp", "../a.cpp",
                                   "reference/a.h", "./reference/a.cpp"})
        expect_has(refusal_with("file", file),
                   "/mutants/0/file: \"" + file + "\" is no .cpp file relative");
    expect_has(refusal_with("file", "suites/b.cpp"), "whoever judges stays as it is");
    expect_has(refusal_with("file", "reference/none.cpp"), "is no file of the source tree");
}

TEST_F(CatalogueTest, OtherShapesAreRefused) {
    const auto read_text = [&](const char* text) {
        return read_catalogue(text, "faults.json", folder_.path());
    };
    EXPECT_THROW(read_text("{"), BadInput);
    EXPECT_THROW(read_text("[]"), BadInput);
    EXPECT_THROW(read_text(R"({"mutants": {}})"), BadInput);
    EXPECT_THROW(read_text(R"({"mutants": [], "more": 1})"), BadInput);
    EXPECT_THROW(read_catalogues({folder_.path() / "none.json"}, folder_.path()), BadInput);
}

TEST_F(CatalogueTest, NamesAreDistinctOverAllFiles) {
    std::ofstream(folder_.path() / "a.json") << Json{{"mutants", std::vector{good()}}}.dump();
    std::ofstream(folder_.path() / "b.json") << Json{{"mutants", std::vector{good()}}}.dump();
    EXPECT_THROW(
        read_catalogues({folder_.path() / "a.json", folder_.path() / "b.json"}, folder_.path()),
        BadInput);
}

TEST(OneAClause, TakesOneOfEachAndTheSeedChooses) {
    const auto mutant = [](const char* name, const char* clause) {
        Mutant made;
        made.name = name;
        made.killed_by = clause;
        return made;
    };
    const std::vector<Mutant> all{mutant("a", "Z"), mutant("b", "Y"), mutant("c", "Z")};
    const auto names = [&](std::uint64_t seed) {
        std::vector<std::string> chosen;
        for (const Mutant& m : one_a_clause(all, seed)) chosen.push_back(m.name);
        return chosen;
    };
    EXPECT_EQ(names(0), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(names(1), (std::vector<std::string>{"b", "c"}));
    EXPECT_EQ(names(2), names(0));
    EXPECT_TRUE(one_a_clause({}, 1).empty());
}

// A clause that no mutant shows to fail might be one that cannot fail.
TEST(CommittedCatalogue, HasAMutantForEachClause) {
    const std::filesystem::path source_tree = ZEROPROOF_SOURCE_DIR;
    const auto mutants = read_catalogues(committed_catalogues(source_tree), source_tree);
    EXPECT_GE(mutants.size(), 110u);
    for (const suites::Clause& clause : suites::all_clauses())
        EXPECT_TRUE(std::ranges::count(mutants, clause.name, &Mutant::killed_by) > 0)
            << "no mutant is to be killed by " << clause.name;
}

}  // namespace
}  // namespace zeroproof::harness
