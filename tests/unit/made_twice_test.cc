// The decorator that finds programs that do not repeat themselves.
#include "simulator/made_twice.h"

#include <gtest/gtest.h>

#include <memory>

#include "simulator/simulation.h"

namespace ddproof::sim {
namespace {

// Two ranks sleep; `extra` adds to how long rank 1 does.
Program sleepers(std::function<Time()> extra) {
  return [extra = std::move(extra)](const RunSettings& settings) {
    Simulation simulation({.ranks = 2,
                           .seed = settings.seed,
                           .scheduler = settings.scheduler,
                           .trace = settings.trace,
                           .observer = settings.observer});
    for (int rank = 0; rank < 2; ++rank) {
      simulation.spawn(rank, "main", [&, rank] {
        for (int i = 0; i < 5; ++i) simulation.sleep(0);
        simulation.sleep(1'000 + (rank == 1 ? extra() : 0));
      });
    }
    return RunResult{simulation.run(), ""};
  };
}

TEST(MadeTwice, LetsAProgramThatRepeatsItselfBe) {
  const Program program = sleepers([] { return 0; });
  const CampaignResult once = run_campaign(program, {.runs = 20});
  const CampaignResult twice = run_campaign(made_twice(program), {.runs = 20});
  EXPECT_EQ(to_string(twice), to_string(once));
}

TEST(MadeTwice, NamesTheFirstEventThatDiffers) {
  RoundRobin round_robin;
  auto calls = std::make_shared<int>(0);  // what a hidden static would be
  const Program program = sleepers([calls] { return 1'000 * (*calls)++; });
  const std::string failure = made_twice(program)({.seed = 0, .scheduler = &round_robin}).failure;
  EXPECT_TRUE(
      failure.starts_with("the program does not repeat itself: first difference in line 18:\n"))
      << failure;
  EXPECT_TRUE(failure.ends_with("- 1 us rank 1 deadline 2\n+ 1 us rank 0 fiber 1 run\n"))
      << failure;
}

TEST(MadeTwice, SeesThatTheSameEventsEndInOtherWays) {
  RoundRobin round_robin;
  int runs = 0;
  const Program program = [&](const RunSettings& settings) {
    RunResult result = sleepers([] { return 0; })(settings);
    if (runs++ > 0) result.failure = "it failed";
    return result;
  };
  EXPECT_EQ(
      made_twice(program)({.seed = 0, .scheduler = &round_robin}).failure,
      "the program does not repeat itself: the same events end in \"\" and in \"it failed\"\n");
}

}  // namespace
}  // namespace ddproof::sim
