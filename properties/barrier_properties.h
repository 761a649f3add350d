// A barrier orders: nobody leaves before the last rank has entered. Over several rounds, with ranks
// that arrive at drawn times.
//
// Stated on one count of entries that all ranks share: whoever has left round k must see at least
// (k+1) W entries, and at most W-1 more, since nobody can be two rounds ahead.
#pragma once

#include "properties/world.h"

namespace ddproof {

struct BarrierCase {
  int world_size = 1;
  int rounds = 1;
  bool monitored = false;   // monitored_barrier
  std::vector<int> delays;  // in units of 100 us, taken in turn over rounds and ranks; empty: none
  std::uint64_t seed = 0;
};

std::string check_barrier_orders(const PropertyWorld& world, const BarrierCase& drawn);

PropertyResult barrier_orders(const PropertyWorld& world, const PropertyOptions& options,
                              Runtime& runtime);

}  // namespace ddproof
