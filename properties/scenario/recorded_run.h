// One run of a scenario as a line of text that replays it anywhere, or is refused: what ran, how
// the schedule went, and what came of it.
//
// Text: "r1.PROGRAM.RUN.CHECK.SCHEDULE": version, the digest of the scenario with its faults, the
// digest of the run's events, a checksum of all before it, and the schedule with its own (as in
// simulator/schedule.h). Letters, digits, '.', '-' and '_' only: no shell needs quotes.
// Threads: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "properties/scenario/scenario.h"
#include "simulator/schedule.h"

namespace ddproof::scenario {

struct RecordedRun {
  std::uint64_t program = 0;
  std::uint64_t digest = 0;
  sim::Schedule schedule;

  bool operator==(const RecordedRun&) const = default;
};

// What `RecordedRun::program` is: the scenario, and the faults of the run.
std::uint64_t program_digest(const Scenario& scenario, const sim::FaultPlan& faults);

std::string to_string(const RecordedRun& run);
// Throws ConfigError for a text of another version, one cut short, and a damaged one.
RecordedRun parse_recorded_run(std::string_view text);

}  // namespace ddproof::scenario
