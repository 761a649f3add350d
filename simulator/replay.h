// Runs a recorded schedule again; after its last decision, takes the first runnable fiber, or goes
// on as another scheduler does.
//
// A program that is not the recorded one shows as soon as it offers other choices than recorded, or
// ends before all decisions were made. A scheduler cannot refuse in the middle of a run (the
// program might swallow the exception), so the run goes on, first come, first served, and check()
// refuses it.
#pragma once

#include <optional>
#include <string>

#include "simulator/schedule.h"
#include "simulator/scheduler.h"

namespace ddproof::sim {

class Replay final : public SeededScheduler {
 public:
  // `continuation` is borrowed; null: the first runnable fiber.
  explicit Replay(Schedule schedule, Scheduler* continuation = nullptr)
      : schedule_(std::move(schedule)), continuation_(continuation) {}

  void begin_run(std::uint64_t seed) override;
  std::size_t next(std::span<const Runnable> runnable) override;

  // After a run. Throws ScheduleError when the run was not the recorded one; names the first
  // decision that differed.
  void check() const;

 private:
  std::size_t differ(std::string what);

  Schedule schedule_;
  Scheduler* continuation_;
  std::size_t place_ = 0;  // in the choices
  std::uint64_t decision_ = 0;
  std::optional<std::string> difference_;  // the first one
};

}  // namespace ddproof::sim
