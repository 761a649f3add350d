// PCT: priorities drawn at random and few changes of them find bugs that need few orderings
// (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized scheduler with probabilistic
// guarantees of finding bugs", ASPLOS 2010).
//
// A bug has depth d when d orderings of steps are enough to make it happen. One run with n fibers
// and k steps hits it with probability at least 1 / (n k^(d-1)).
//
// What counts as a step: a decision, a moment at which two or more fibers could run. Where only one
// can, no order is chosen, and a change of priority acts at the next decision just as well. So k is
// the most decisions of a run, not its events, and n its fibers that ever took part in one.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/scheduler.h"

namespace ddproof::sim {

// The fiber with the highest priority runs. Every fiber draws one when it is first seen; at depth-1
// decisions, drawn uniformly from the first `steps`, the one that would run falls below all others.
class Pct final : public SeededScheduler {
 public:
  // Throws std::invalid_argument unless depth >= 1 and steps >= 1.
  Pct(int depth, std::uint64_t steps);
  void begin_run(std::uint64_t seed) override;
  std::size_t next(std::span<const Runnable> runnable) override;

 private:
  std::size_t highest(std::span<const Runnable> runnable);
  std::uint64_t& priority_of(std::uint64_t fiber);

  std::uint64_t steps_;
  std::vector<std::uint64_t> change_at_;   // decision numbers, 1, 2, ...; by the priority they give
  std::vector<std::uint64_t> priorities_;  // by fiber id; 0: not drawn yet
  std::uint64_t decisions_ = 0;
};

// The least probability with which one run hits a bug of this depth. Requires: all at least 1.
double pct_bound(std::uint64_t fibers, std::uint64_t steps, int depth);

// The chance that `runs` independent runs all miss what each hits with at least this probability.
double miss_probability(double bound, std::uint64_t runs);

}  // namespace ddproof::sim
