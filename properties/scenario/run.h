// Runs a scenario under its schedules and compares what comes of it with what it expects.
//
// Threads: one at a time for a scenario; nothing is shared between scenarios.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "properties/scenario/judge.h"
#include "properties/scenario/scenario.h"
#include "properties/scenario/story.h"

namespace ddproof::scenario {

struct RunOptions {
  std::uint64_t seed = 0;
  bool stories = false;  // keep what each rank did
};

// Of the first run that is not as expected; else of the first one.
struct ScenarioResult {
  std::string wrong;  // empty: every run is as expected
  Verdict verdict;
  std::string scheduler;  // "random"
  std::uint64_t seed = 0;
  std::int64_t runs = 0;  // that were made
  std::uint64_t digest = 0;
  Duration virtual_time{0};
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::vector<RankStory> stories;  // by rank, when asked for
};

// Throws ConfigError when this build lacks the backend "sim".
ScenarioResult run_scenario(const Scenario& scenario, const RunOptions& options);

}  // namespace ddproof::scenario
