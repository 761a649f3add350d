// How large a run of a scenario is: what faults that are drawn for it can strike.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "properties/scenario/scenario.h"
#include "simulator/draw_faults.h"

namespace ddproof::scenario {

// Measured in one run without faults, first come, first served.
sim::FaultShape measure_shape(const Scenario& scenario, std::uint64_t seed);

}  // namespace ddproof::scenario
