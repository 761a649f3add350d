// Draws a plan of faults from a seed. In two steps, so that runs differ in kind and not only in
// place (swarm testing: Groce et al., ISSTA 2012): first which kinds this run has at all, each with
// one chance in kDrawnKindsOneIn, then how many of each, 1 to kDrawnFaultsMax, and where.
//
// Deterministic: the same seed and shape give the same plan on every machine and compiler.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/disk.h"
#include "simulator/fault_plan.h"

namespace ddproof::sim {

inline constexpr std::uint64_t kDrawnKindsOneIn = 4;
inline constexpr std::uint64_t kDrawnFaultsMax = 3;

// Roughly what a run has, so that most faults find something to strike. Calls that nobody makes on
// the disk get no faults; one rank: none of messages.
struct FaultShape {
  int ranks = 1;
  std::uint64_t operations = 1;     // of a rank, at least 1
  std::uint64_t messages = 1;       // of a pair, at least 1
  std::uint64_t message_bytes = 1;  // of the longest, at least 1
  std::vector<DiskCalls> disk;      // by rank; may be empty
  Time duration = 1'000'000;        // of the run, at least 1
};

FaultPlan draw_faults(std::uint64_t seed, const FaultShape& shape);

}  // namespace ddproof::sim
