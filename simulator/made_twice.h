// Finds out whether a program repeats itself: a decorator for programs.
#pragma once

#include "simulator/campaign.h"

namespace ddproof::sim {

// `program`, each run of which is made twice: as the settings say, and again with the choices of
// the first. Where the two differ, the result's failure says so and shows the first event that
// does, whatever else is wrong. Requires: `program` gives settings.trace to its Simulation. Keeps
// the logs of both runs in memory.
Program made_twice(Program program);

}  // namespace ddproof::sim
