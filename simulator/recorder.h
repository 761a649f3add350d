// Keeps what another scheduler decides.
#pragma once

#include <algorithm>

#include "simulator/schedule.h"
#include "simulator/scheduler.h"

namespace ddproof::sim {

class Recorder final : public Scheduler {
 public:
  // `scheduler` is borrowed.
  explicit Recorder(Scheduler& scheduler) : scheduler_(scheduler) {}

  void begin_run(std::uint64_t seed) override {
    schedule_ = {.seed = seed};
    fibers_ = 0;
    scheduler_.begin_run(seed);
  }
  std::size_t next(std::span<const Runnable> runnable) override {
    const std::size_t index = scheduler_.next(runnable);
    if (index != 0) schedule_.choices.push_back({schedule_.decisions, index, runnable.size()});
    ++schedule_.decisions;
    for (const Runnable& entry : runnable) fibers_ = std::max(fibers_, entry.id);
    return index;
  }
  std::uint64_t next_u64() override { return scheduler_.next_u64(); }

  // Of the latest run.
  const Schedule& schedule() const { return schedule_; }
  // The highest id of a fiber that took part in a decision: no fewer than took part.
  std::uint64_t fibers() const { return fibers_; }

 private:
  Scheduler& scheduler_;
  Schedule schedule_;
  std::uint64_t fibers_ = 0;
};

}  // namespace ddproof::sim
