// One run of a scenario, and what came of it.
//
// Threads: runs on different threads do not meet.
#pragma once

#include <string>
#include <vector>

#include "backends/registry/simulated_world.h"
#include "properties/scenario/judge.h"
#include "properties/scenario/scenario.h"
#include "properties/scenario/story.h"
#include "simulator/campaign.h"

namespace ddproof::scenario {

// Pointers are borrowed for the run; null: none.
struct RunOptions {
  sim::FaultPlan faults = {};  // of this run
  sim::StackPool* stacks = nullptr;
  bool stories = false;  // keep what each rank did
  bool records = false;  // keep each rank's last calls
};

struct Run {
  std::string wrong;  // what is not as expected; empty: nothing
  Verdict verdict;
  sim::Report report;
  std::vector<RankStory> stories;         // by rank, when asked for
  std::vector<FlightRecorder> recorders;  // by rank, when asked for
};

// Throws ConfigError when this build lacks the backend "sim".
Run run_once(const Scenario& scenario, const sim::RunSettings& settings, const RunOptions& options);

}  // namespace ddproof::scenario
