// One run of a simulated world, with everything that a test or a tool may set.
//
// A rank is a fiber that gets a ProcessGroup over the world and a Runtime. When its body returns
// it stays, silent, until the bodies of all ranks have ended, as a program does that others still
// talk to; so a rank that left too early shows as a deadlock that names it, not as a broken
// connection. When its body throws, its connections close at once.
// Threads: a run uses the calling thread only. Runs on different threads do not meet.
#pragma once

#include <functional>

#include "backends/api/backend.h"
#include "backends/gloo/gloo_process_group.h"
#include "backends/sim/payload_mode.h"
#include "backends/sim/sim_runtime.h"
#include "simulator/disk.h"
#include "simulator/fault_plan.h"
#include "simulator/network.h"
#include "simulator/report.h"
#include "simulator/simulation.h"

namespace ddproof {

// How finely collectives are simulated. Bytes, times and each rank's counts are the same.
enum class Fidelity : std::uint8_t {
  kMessages,  // message by message: faults can strike any of them, traces show them
  kWhole,     // as one event where that is exact (whole_calls.h says where), else as kMessages;
              // with faults or an observer all are as kMessages
};

// Pointers are borrowed for the run; null takes the default.
struct SimWorldOptions {
  WorldOptions world;
  sim::LinkClass same_node = sim::NetworkOptions{}.same_node;
  sim::LinkClass across_nodes = sim::NetworkOptions{}.across_nodes;
  sim::Scheduler* scheduler = nullptr;      // random walk, from the world's seed
  sim::FaultPlan faults = {};               // the report says which took effect
  sim::TraceSink* trace = nullptr;          // none
  sim::StepObserver* observer = nullptr;    // none
  const sim::Liveness* liveness = nullptr;  // no progress is asked for
  sim::StackPool* stacks = nullptr;         // the run's own
  // An empty one of the run's own. Faults strike this disk only, not world.files in its place.
  sim::Disk* disk = nullptr;
  std::uint64_t event_count_max = sim::SimulationOptions{}.event_count_max;
  // True: calls wait for their timeouts, in virtual time, even when nobody can go on.
  bool timeouts_end_deadlocks = false;
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kAuto;
  PayloadMode payload = PayloadMode::kReal;
  Fidelity fidelity = Fidelity::kMessages;
};

// Runs `body` once per rank. What ranks threw is in the report.
// Throws ConfigError for options that describe no world, and faults that it cannot have.
sim::Report run_sim_world(const SimWorldOptions& options,
                          const std::function<void(RankContext&)>& body);

// The variables that a launcher would set for this rank (as torchrun does).
EnvironmentMap launcher_environment(const WorldOptions& world, int rank);

// Throws what a caller of run_world() gets: sim::EventLimitError when the run was stopped, else as
// rethrow_root_cause(). Returns when no rank threw.
void rethrow(const sim::Report& report);

// What a caller of run_world() gets of a run in which nothing was thrown.
WorldReport to_world_report(const sim::Report& report);

// What groups of simulated worlds can do.
Capabilities sim_capabilities();

}  // namespace ddproof
