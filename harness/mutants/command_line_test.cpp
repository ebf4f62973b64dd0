// Command lines of build systems, taken apart as a shell would, or refused.
#include "harness/mutants/command_line.h"

#include <gtest/gtest.h>

#include "harness/mutants/build_tree.h"

namespace zeroproof::harness {
namespace {

using Words = std::vector<std::string>;

TEST(SplitCommand, SplitsAtBlanks) {
    EXPECT_EQ(split_command("  c++ -O3\t-c  a.cpp\n"), (Words{"c++", "-O3", "-c", "a.cpp"}));
    EXPECT_EQ(split_command(""), Words{});
}

TEST(SplitCommand, TakesQuotesAndBackslashesAsAShellDoes) {
    EXPECT_EQ(split_command(R"(-DNAME=\"1.0\" "a b" 'c  d' e\ f)"),
              (Words{"-DNAME=\"1.0\"", "a b", "c  d", "e f"}));
    EXPECT_EQ(split_command(R"("a\"b\\c\d" '$x' '' a"b"c)"),
              (Words{"a\"b\\c\\d", "$x", "", "abc"}));
}

TEST(SplitCommand, RefusesWhatNeedsAShell) {
    for (const char* command : {"a && b", "a; b", "a | b", "a > b", "$HOME", "`a`", "\"$x\"", "*.o",
                                "~/a", "'open", "\"open", "open\\"})
        EXPECT_THROW(split_command(command), BadCommand) << command;
}

TEST(Recompile, ChangesSourceAndObjectAlone) {
    EXPECT_EQ(recompile({"c++", "-O3", "-Werror", "-MD", "-MF", "a.d", "-MT", "a.o", "-o", "a.o",
                         "-c", "/src/a.cpp"},
                        "/src/a.cpp", "/mutants/a.cpp", "/mutants/mutant.o"),
              (Words{"c++", "-O3", "-Werror", "-c", "-Wno-error", "-o", "/mutants/mutant.o",
                     "/mutants/a.cpp"}));
}

TEST(Relink, PutsTheObjectBeforeEveryLibrary) {
    EXPECT_EQ(relink({"c++", "main.o", "-o", "zeroproof", "a/liba.a", "b/libb.a", "/usr/c.so"},
                     "/mutants/mutant.o", "/mutants/zeroproof"),
              (Words{"c++", "main.o", "-o", "/mutants/zeroproof", "/mutants/mutant.o", "a/liba.a",
                     "b/libb.a", "/usr/c.so"}));
    EXPECT_THROW(relink({"c++", "main.o", "-o", "zeroproof"}, "m.o", "z"), UnusableBuild);
    EXPECT_THROW(relink({"c++", "main.o", "liba.a"}, "m.o", "z"), UnusableBuild);
}

TEST(BuildTree, SaysWhatToDoWhenItIsGone) {
    try {
        const BuildTree build("/no/source", "/no/build");
        FAIL() << "accepted";
    } catch (const UnusableBuild& error) {
        EXPECT_NE(std::string(error.what()).find("cmake --preset"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("/no/source"), std::string::npos);
    }
}

}  // namespace
}  // namespace zeroproof::harness
