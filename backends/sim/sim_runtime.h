// The simulator's Runtime: what a simulated rank sees of the outside world.
//
// Invariants: now() is virtual time since the start of the run; tasks are fibers; random_u64() is
// the rank's own stream, whatever the schedule. A wait that can never end throws
// CommError{kDeadlock} whose text is the verdict; in a rank that died it throws sim::RankKilled.
// Monitor::lock() and Task::join() do neither: a fiber stuck in them is abandoned.
// A loop that polls without waiting sees time pass in small steps.
// Threads: that of the Simulation. `simulation` and `files` must outlive the Runtime.
#pragma once

#include <map>
#include <string>

#include "backends/api/error.h"
#include "backends/api/runtime.h"
#include "simulator/simulation.h"

namespace ddproof {

// Variables of one rank, by name.
using EnvironmentMap = std::map<std::string, std::string, std::less<>>;

class SimRuntime final : public Runtime {
 public:
  SimRuntime(sim::Simulation& simulation, int rank, FileSystem& files, EnvironmentMap environment);

  TimePoint now() const override;
  // Starts at 2026-01-01 00:00:00 UTC; faults make it jump.
  Duration wall_clock() const override;
  void sleep_for(Duration duration) override;
  void charge(Duration compute_cost) override;
  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override;
  std::unique_ptr<Monitor> make_monitor() override;
  void begin_operation(std::string_view what, const CallSite& site,
                       const MeetingCall& meeting) override;
  void hit(std::string_view probe) override { simulation_.hit(probe); }
  std::uint64_t random_u64() override;
  FileSystem& files() override { return files_; }
  const Environment& environment() const override { return environment_; }

  // This rank crashes or hangs here, as it would by a fault; at kLives nothing happens.
  void meet(sim::RankFate fate);

 private:
  class MapEnvironment final : public Environment {
   public:
    explicit MapEnvironment(EnvironmentMap variables) : variables_(std::move(variables)) {}
    std::optional<std::string> get(std::string_view name) const override;
    std::vector<std::string> all() const override;

   private:
    EnvironmentMap variables_;
  };

  sim::Simulation& simulation_;
  int rank_;
  FileSystem& files_;
  MapEnvironment environment_;
};

// Calls `wait`; a DeadlockError that comes out of it becomes VerdictError, same text.
template <class Wait>
auto with_comm_errors(Wait&& wait) {
  try {
    return wait();
  } catch (const sim::DeadlockError& error) {
    const auto kind = error.is_mismatch() ? CommErrorKind::kMismatch : CommErrorKind::kDeadlock;
    throw VerdictError(kind, error.what(), error.culprits());
  }
}

}  // namespace ddproof
