#include "reference/launch/line_prefix.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace ddproof {
namespace {

TEST(LinePrefix, GivesWholeLinesOnly) {
  LinePrefix prefix("[0] ");
  EXPECT_EQ(prefix.take("one\ntw"), "[0] one\n");
  EXPECT_EQ(prefix.take("o"), "");
  EXPECT_EQ(prefix.take("\n\nthree"), "[0] two\n[0] \n");
  EXPECT_EQ(prefix.finish(), "[0] three\n");
  EXPECT_EQ(prefix.finish(), "");
}

TEST(LinePrefix, CutsLinesThatNeverEnd) {
  LinePrefix prefix("> ");
  const std::string longest(LinePrefix::kLineBytesMax, 'x');
  EXPECT_EQ(prefix.take(longest + "y"), "> " + longest + "\n");
  EXPECT_EQ(prefix.finish(), "> y\n");
}

// However the bytes are cut, the lines are the same.
RC_GTEST_PROP(LinePrefix, DoesNotDependOnHowBytesArrive, ()) {
  const auto byte = rc::gen::elementOf(std::string("ab\n\r"));
  const auto pieces =
      *rc::gen::container<std::vector<std::string>>(rc::gen::container<std::string>(byte));
  LinePrefix in_pieces("> ");
  LinePrefix at_once("> ");
  std::string whole;
  std::string lines;
  for (const std::string& piece : pieces) {
    whole += piece;
    lines += in_pieces.take(piece);
  }
  lines += in_pieces.finish();
  std::string expected = at_once.take(whole);
  expected += at_once.finish();
  RC_ASSERT(lines == expected);
  if (!whole.empty()) RC_ASSERT(lines.starts_with("> ") && lines.ends_with("\n"));
}

}  // namespace
}  // namespace ddproof
