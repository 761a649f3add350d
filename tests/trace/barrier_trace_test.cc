// The timeline of a small simulated run against the stored one. A change of it is no bug by itself,
// but it changes every digest: look at what moved, then store what the failure prints.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "backends/sim/sim_world.h"
#include "simulator/trace.h"

namespace ddproof {
namespace {

TEST(Trace, ABarrierOfThreeTakesTheStoredTimeline) {
  std::ostringstream timeline;
  sim::TextTrace trace(timeline);
  SimWorldOptions options;
  options.world.world_size = 3;
  options.world.seed = 1;
  options.trace = &trace;
  const CallSite site{.file = "program.cc", .line = 1};
  rethrow(run_sim_world(options, [&](RankContext& rank) { rank.group.barrier({}, site)->wait(); }));
  std::ifstream stored(DDPROOF_SOURCE_DIR "/tests/trace/barrier_of_three.txt");
  std::ostringstream expected;
  expected << stored.rdbuf();
  EXPECT_EQ(timeline.str(), expected.str());
}

}  // namespace
}  // namespace ddproof
