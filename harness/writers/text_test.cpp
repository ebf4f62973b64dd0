#include "harness/writers/text.h"

#include <gtest/gtest.h>

namespace zeroproof::harness {
namespace {

TEST(Text, IsMadePrintable) {
    EXPECT_EQ(printable("a\nb\x7f"), "a\\nb\\x7f");
    EXPECT_EQ(printable_lines("a\nb"), "a\nb");
    EXPECT_EQ(printable("Φ✗😀"), "Φ✗😀");
    EXPECT_EQ(printable("\xc0\x80"), "\uFFFD\uFFFD") << "overlong";
    EXPECT_EQ(printable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD") << "surrogate";
    EXPECT_EQ(printable("\xef\xbf\xbf"), "\uFFFD") << "not in XML";
    EXPECT_EQ(printable("\xe2\x9c"), "\uFFFD\uFFFD") << "cut off";
}

TEST(Text, IsWrappedAtSpaces) {
    using Lines = std::vector<std::string>;
    EXPECT_EQ(wrapped("one two three", 7), (Lines{"one two", "three"}));
    EXPECT_EQ(wrapped("unbreakable words", 5), (Lines{"unbreakable", "words"}));
    EXPECT_EQ(wrapped("a\n\nb", 5), (Lines{"a", "", "b"}));
    EXPECT_EQ(wrapped("ΦΦΦ ΦΦΦ", 7), (Lines{"ΦΦΦ ΦΦΦ"}));
    EXPECT_EQ(wrapped("", 5), (Lines{""}));
}

TEST(Text, IsQuotedForTheShell) {
    EXPECT_EQ(shell_quoted("./engine.so"), "./engine.so");
    EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace zeroproof::harness
