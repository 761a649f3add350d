// Programs with a bug of known depth, made of the simulator's primitives only: each rank takes its
// turns, and the order of the turns of all ranks decides.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "simulator/simulation.h"

namespace ddproof::test {

struct PlantedBug {
  int depth;
  std::vector<int> turns;                          // by rank
  std::function<bool(const std::string&)> is_hit;  // given the ranks in the order of their turns
};

// The place of a rank's n-th turn, n = 0, 1, ...
inline std::size_t place_of(const std::string& order, char rank, int n) {
  std::size_t place = order.find(rank);
  while (n-- > 0) place = order.find(rank, place + 1);
  return place;
}

inline std::vector<PlantedBug> planted_bugs() {
  return {
      // Rank 2 is done before rank 0 begins: one ordering.
      {1, {4, 2, 4}, [](const std::string& order) { return order.rfind('2') < order.find('0'); }},
      // All of rank 1 between two turns of rank 0: two orderings.
      {2,
       {6, 3},
       [](const std::string& order) {
         return place_of(order, '0', 2) < order.find('1') &&
                order.rfind('1') < place_of(order, '0', 3);
       }},
      // A circle through both ranks' critical turns: three orderings.
      {3,
       {6, 6},
       [](const std::string& order) {
         const std::size_t steps[] = {place_of(order, '0', 2), place_of(order, '1', 2),
                                      place_of(order, '0', 3), place_of(order, '1', 3)};
         return std::is_sorted(std::begin(steps), std::end(steps));
       }},
  };
}

// The ranks in the order of their turns.
inline std::string order_of_turns(const PlantedBug& bug, std::uint64_t seed,
                                  sim::Scheduler& scheduler, sim::StackPool* stacks = nullptr) {
  std::string order;
  sim::Simulation simulation({.ranks = static_cast<int>(bug.turns.size()),
                              .seed = seed,
                              .scheduler = &scheduler,
                              .stacks = stacks});
  for (int rank = 0; rank < simulation.ranks(); ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      for (int turn = 0; turn < bug.turns[static_cast<std::size_t>(rank)]; ++turn) {
        if (turn > 0) simulation.sleep(0);
        order += static_cast<char>('0' + rank);
      }
    });
  }
  simulation.run();
  return order;
}

}  // namespace ddproof::test
