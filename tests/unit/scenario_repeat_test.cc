// Every scenario file repeats itself: each run twice, event by event, and a thousand of them at the
// same time on several threads.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "backends/local/os_runtime.h"
#include "properties/scenario/parse.h"
#include "properties/scenario/run.h"
#include "simulator/made_twice.h"

namespace ddproof::scenario {
namespace {

std::vector<Scenario> every_scenario() {
  std::vector<Scenario> scenarios;
  const std::string folder = DDPROOF_SOURCE_DIR "/tests/scenarios";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    scenarios.push_back(parse_scenario(text.str(), entry.path().filename().string()));
  }
  return scenarios;
}

// Its verdict has both, and a file that leaves one out would not see it change.
TEST(ScenarioFiles, ThatExpectOneFailureSayWhoAndWhat) {
  for (const Scenario& scenario : every_scenario()) {
    const Expectation& expect = scenario.expect;
    if (expect.outcomes != std::vector{Outcome::kPasses} && expect.outcomes.size() == 1) {
      EXPECT_TRUE(expect.culprits.has_value()) << scenario.file;
      EXPECT_FALSE(expect.operation.empty()) << scenario.file;
    }
  }
}

sim::Program program_of(const Scenario& scenario) {
  return [&scenario](const sim::RunSettings& settings) {
    Run run = run_once(scenario, settings, {.faults = scenario.faults});
    return sim::RunResult{std::move(run.report), run.wrong};
  };
}

TEST(ScenarioRepeat, EveryFileMadeTwiceHasTheSameEvents) {
  const std::vector<Scenario> scenarios = every_scenario();
  ASSERT_GT(scenarios.size(), 40u);
  for (const Scenario& scenario : scenarios) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      sim::RandomWalk random_walk;
      const sim::RunResult result =
          made_twice(program_of(scenario))({.seed = seed, .scheduler = &random_walk});
      EXPECT_EQ(result.failure, "") << scenario.file;
    }
  }
}

TEST(ScenarioRepeat, AThousandWorldsSideBySideDoNotMeet) {
  const std::vector<Scenario> scenarios = every_scenario();
  const auto digest = [&](std::size_t i, sim::StackPool* stacks) {
    sim::RandomWalk random_walk;
    const Scenario& scenario = scenarios[i % scenarios.size()];
    return run_once(scenario, {.seed = i, .scheduler = &random_walk},
                    {.faults = scenario.faults, .stacks = stacks})
        .report.digest;
  };
  constexpr std::size_t kWorlds = 300;
  std::vector<std::uint64_t> alone;
  for (std::size_t i = 0; i < kWorlds; ++i) alone.push_back(digest(i, nullptr));
  OsRuntime runtime;
  std::vector<int> wrong(4, 0);
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::size_t task = 0; task < wrong.size(); ++task) {
    tasks.push_back(runtime.spawn("worlds", [&, task] {
      sim::StackPool stacks;
      for (std::size_t i = 0; i < kWorlds; ++i) {
        const std::size_t world = (i + 71 * task) % kWorlds;  // not all the same at one time
        if (digest(world, &stacks) != alone[world]) ++wrong[task];
      }
    }));
  }
  for (const auto& task : tasks) task->join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace ddproof::scenario
