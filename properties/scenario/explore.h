// Runs a scenario under its schedules and drawn faults, compares what comes of it with what it
// expects, and keeps the run that is told: the first that is not as expected, else the first of
// all.
//
// Deterministic. Threads: one at a time for a scenario; nothing is shared between scenarios.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "properties/scenario/recorded_run.h"
#include "properties/scenario/run.h"

namespace ddproof::scenario {

// Pointers are borrowed.
struct ExploreOptions {
  std::uint64_t seed = 0;           // of the first run of each schedule
  bool stories = false;             // of the run that is told: keep what each rank did
  bool records = false;             // of the run that is told: keep each rank's last calls, which
                                    // are always kept of one that is not as expected
  sim::TraceSink* trace = nullptr;  // of the run that is told
};

// What a schedule of the scenario came to, over all drawn faults.
struct Explored {
  sim::Strategy strategy = sim::Strategy::kRandomWalk;
  sim::CampaignResult result;
};

struct ScenarioResult {
  std::string wrong;  // empty: every run is as expected
  Run told;
  sim::FaultPlan faults;                // of the run that is told, struck or not
  std::optional<RecordedRun> recorded;  // replays it; always there when told.wrong is not empty
  sim::Strategy strategy = sim::Strategy::kRandomWalk;  // that found it
  std::uint64_t seed = 0;                               // its own
  std::uint64_t runs = 0;                    // that were made, but for those of shrinking
  std::vector<std::uint64_t> outcomes;       // runs, by Outcome
  std::vector<std::uint64_t> faults_struck;  // by sim::FaultKind, over all runs
  std::map<std::string, std::uint64_t, std::less<>> probes;  // hits, over all runs
  std::vector<Explored> explored;
};

// Throws ConfigError when this build lacks the backend "sim".
ScenarioResult run_scenario(const Scenario& scenario, const ExploreOptions& options);

// Runs one schedule, with the scenario's own faults. Throws sim::ScheduleError when the scenario
// offers other choices than the schedule made.
ScenarioResult run_schedule(const Scenario& scenario, const sim::Schedule& schedule,
                            const ExploreOptions& options);

// Throws ConfigError when the run was not recorded with this scenario and its own faults.
void require_same_program(const Scenario& scenario, const RecordedRun& recorded);

// Runs the recorded run again, with the scenario's own faults.
// Throws ConfigError as require_same_program(), and when it goes another way than the recorded one
// did.
ScenarioResult replay_scenario(const Scenario& scenario, const RecordedRun& recorded,
                               const ExploreOptions& options);

}  // namespace ddproof::scenario
