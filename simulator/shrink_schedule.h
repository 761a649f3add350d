// Makes a failing schedule simple: as few choices as possible other than the first runnable fiber.
#pragma once

#include "simulator/campaign.h"

namespace ddproof::sim {

// Removes choices, all of them at first and one by one at last (delta debugging, Zeller and
// Hildebrandt 2002), as long as the program fails with the same words. The result fails so, replays
// exactly, and loses that failure when any single choice is left out, unless the runs ran out.
// Requires: the program fails with `failure` under `schedule`.
Schedule shrink_schedule(const Program& program, Schedule schedule, const std::string& failure,
                         std::uint64_t runs_max = 2'000);

}  // namespace ddproof::sim
