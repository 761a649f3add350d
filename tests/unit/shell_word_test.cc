// Words of printed command lines: quoted where a shell would take them apart.
#include "cli/shell_word.h"

#include <gtest/gtest.h>

namespace ddproof {
namespace {

TEST(ShellWord, IsInQuotesOnlyWhereAShellNeedsThem) {
  EXPECT_EQ(shell_word("tests/a-b_1.json"), "tests/a-b_1.json");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_word("~/x"), "'~/x'");
  EXPECT_EQ(shell_word("a;b"), "'a;b'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("Übung"), "'Übung'");
}

}  // namespace
}  // namespace ddproof
