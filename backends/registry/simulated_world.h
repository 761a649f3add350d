// Simulated worlds with everything that can be set, for tools that need more than run_world(): the
// verdict as data, a trace, a scheduler, faults.
//
// Stateless. Threads: any.
#pragma once

#include <functional>
#include <vector>

#include "backends/recorder/flight_recorder.h"
#include "backends/sim/sim_world.h"

namespace ddproof {

// run_sim_world(), whose groups compare every rank's calls where options.world says `checked`: what
// the backend "sim" of make_backend() runs. Each rank's calls go into `recorders`, one for each
// rank; null: they are not kept.
// Throws ConfigError for options that describe no world, and when this build lacks the backend.
sim::Report run_simulated_world(const SimWorldOptions& options,
                                const std::function<void(RankContext&)>& body,
                                std::vector<FlightRecorder>* recorders = nullptr);

// run_world() of the backend "sim" of make_backend(), which also writes its events and calls.
WorldReport run_traced_world(const WorldOptions& options, sim::TraceSink& trace,
                             std::vector<FlightRecorder>& recorders,
                             const std::function<void(RankContext&)>& body);

// The calling task's rank crashes or hangs here, by its program's own choice; at kLives nothing
// happens. Requires: `runtime` is a rank's of run_simulated_world().
void meet_fate(Runtime& runtime, sim::RankFate fate);

}  // namespace ddproof
