#include "properties/scenario/scenario.h"

#include <algorithm>

#include "backends/api/check.h"

namespace ddproof::scenario {

const std::vector<std::string>& outcome_names() {
  static const std::vector<std::string> names = {
      "passes", "deadlock",     "mismatch",   "timeout",  "lost rank",
      "error",  "wrong result", "divergence", "livelock", "liveness"};
  return names;
}

const std::vector<std::string>& fidelity_names() {
  static const std::vector<std::string> names = {"messages", "whole"};
  return names;
}

const std::vector<std::string>& payload_names() {
  static const std::vector<std::string> names = {"real", "hashed", "sizes"};
  return names;
}

const std::vector<std::string>& scheduler_names() {
  static const std::vector<std::string> names = {"round robin", "random", "pct", "exhaustive",
                                                 "campaign"};
  return names;
}

const Steps& Scenario::program_of(int rank) const {
  for (const Program& program : programs) {
    if (program.ranks.contains(rank)) return program.steps;
  }
  DDPROOF_CHECK(false);
}

int Scenario::size_of(const CallStep& call) const {
  return call.group < 0
             ? world_size
             : static_cast<int>(groups[static_cast<std::size_t>(call.group)].ranks.size());
}

int Scenario::rank_in_group(const CallStep& call, int rank) const {
  if (call.group < 0) return rank;
  const std::vector<int>& ranks = groups[static_cast<std::size_t>(call.group)].ranks;
  const auto found = std::ranges::find(ranks, rank);
  DDPROOF_CHECK(found != ranks.end());
  return static_cast<int>(found - ranks.begin());
}

}  // namespace ddproof::scenario
