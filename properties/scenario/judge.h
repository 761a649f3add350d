// What a run came to, in a scenario's words, and whether that is what the scenario expects.
//
// Stateless. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/scenario/replicas.h"
#include "properties/scenario/scenario.h"
#include "simulator/report.h"

namespace ddproof::scenario {

struct Verdict {
  Outcome outcome = Outcome::kPasses;
  std::vector<int> culprits;  // ascending; empty: none is known
  std::string text;           // the verdict's own; empty when the run passes
};

// What happened first decides: a rank's own failure, then a lost rank, then what calls report.
// `divergence`: of what ranks must hold alike, where there is one.
Verdict judge(const sim::Report& report, const std::optional<Divergence>& divergence);

// What differs from the expectation, in one line; empty when nothing does.
std::string difference(const Expectation& expected, const Verdict& verdict,
                       std::int64_t guarded_works);

// "deadlock of rank 1"
std::string describe(const Verdict& verdict);

}  // namespace ddproof::scenario
