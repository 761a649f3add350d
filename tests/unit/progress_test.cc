// What is shown of a run's progress, and how often.
#include "cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ddproof {
namespace {

// Four steps, half a second apart.
std::string shown(ProgressStyle style) {
  std::ostringstream out;
  {
    Progress progress(out, style);
    for (int step = 1; step <= 4; ++step) {
      progress.show(step, 4, "step " + std::to_string(step),
                    TimePoint(std::chrono::milliseconds(500 * step)));
    }
  }
  return out.str();
}

TEST(Progress, ALineASecondAndTheLastOne) {
  EXPECT_EQ(shown(ProgressStyle::kLines),
            "[#######.......................] step 1\n"
            "[######################........] step 3\n"
            "[##############################] step 4\n");
}

TEST(Progress, ABarIsDrawnInPlaceAndTakenAway) {
  const std::string text = shown(ProgressStyle::kBar);
  EXPECT_TRUE(text.starts_with("\r\033[K[#######.......................] step 1\r\033[K[###"))
      << text;
  EXPECT_TRUE(text.ends_with("] step 4\r\033[K")) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(Progress, IsSilentWhereNobodyLooks) { EXPECT_EQ(shown(ProgressStyle::kSilent), ""); }

}  // namespace
}  // namespace ddproof
