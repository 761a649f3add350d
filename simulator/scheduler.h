// Who runs next: the one source of every choice that a run makes.
//
// A Simulation asks its Scheduler each time when more than one fiber could run, and for random
// bits where a model needs them (jitter, faults). So a run is a function of its program, its
// scheduler and the seed.
// Threads: a Scheduler belongs to one Simulation at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "simulator/random.h"

namespace ddproof::sim {

class Fiber;

// A fiber that could run now.
struct Runnable {
  Fiber* fiber;      // opaque to schedulers
  std::uint64_t id;  // 1, 2, ... in the order of spawning
  int rank;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Called once before a run. Forgets all earlier runs.
  virtual void begin_run(std::uint64_t seed) = 0;
  // Chooses an index into `runnable`, which holds at least two fibers; the one at index 0 has
  // waited longest if only index 0 was ever chosen.
  virtual std::size_t next(std::span<const Runnable> runnable) = 0;
  virtual std::uint64_t next_u64() = 0;
};

// Two streams from one seed: bits for models, and bits for choices. The first does not depend on
// how many choices were made, so a run replays from its seed and its choices.
class SeededScheduler : public Scheduler {
 public:
  void begin_run(std::uint64_t seed) override {
    choices_ = SplitMix64(mix64(seed));
    models_ = SplitMix64(mix64(~seed));
  }
  std::uint64_t next_u64() final { return models_.next(); }

 protected:
  std::uint64_t random() { return choices_.next(); }

 private:
  SplitMix64 choices_{0};
  SplitMix64 models_{0};
};

// First come, first served; the seed decides only next_u64(). The cheapest, for large runs.
class RoundRobin : public SeededScheduler {
 public:
  std::size_t next(std::span<const Runnable>) override { return 0; }
};

// Each runnable fiber is equally likely.
class RandomWalk : public SeededScheduler {
 public:
  std::size_t next(std::span<const Runnable> runnable) override {
    return below(random(), runnable.size());
  }
};

}  // namespace ddproof::sim
