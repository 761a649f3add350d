// The timeline of a small simulated run against the stored one. A change of it is no bug by itself,
// but it changes every digest: look at what moved, then store what the failure prints.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "backends/sim/sim_world.h"

namespace ddproof {
namespace {

class Timeline final : public sim::TraceSink {
 public:
  void on_event(const sim::Event& event) override { text += to_string(event) + "\n"; }
  std::string text;
};

TEST(Trace, ABarrierOfThreeTakesTheStoredTimeline) {
  Timeline timeline;
  SimWorldOptions options;
  options.world.world_size = 3;
  options.world.seed = 1;
  options.trace = &timeline;
  const CallSite site{.file = "program.cc", .line = 1};
  rethrow(run_sim_world(options, [&](RankContext& rank) { rank.group.barrier({}, site)->wait(); }));
  std::ifstream stored(DDPROOF_SOURCE_DIR "/tests/trace/barrier_of_three.txt");
  std::ostringstream expected;
  expected << stored.rdbuf();
  EXPECT_EQ(timeline.text, expected.str());
}

}  // namespace
}  // namespace ddproof
