#include "backends/sim/sim_runtime.h"

#include <utility>

#include "backends/api/check.h"
#include "simulator/wait_list.h"

namespace ddproof {
namespace {

constexpr Duration kStartOfWallClock = std::chrono::seconds(1'767'225'600);  // 2026-01-01

class SimMonitor final : public Monitor {
 public:
  explicit SimMonitor(sim::Simulation& simulation)
      : simulation_(simulation),
        key_(simulation.new_object()),
        lockers_(simulation),
        waiters_(simulation) {}

  void lock() override {
    simulation_.note_poll(sim::WaitKind::kCleanup);
    acquire();
  }

  void unlock() override {
    touch();
    DDPROOF_CHECK(locked_);
    locked_ = false;
    lockers_.wake_all(simulation_);
  }

  bool wait(TimePoint deadline, const WaitReason& reason) override {
    const sim::WaitReason told{.what = reason.what,
                               .file = reason.site.file,
                               .line = reason.site.line,
                               .ranks = &reason.ranks,
                               .kind = reason.idle ? sim::WaitKind::kIdle : sim::WaitKind::kCall,
                               .is_local = reason.is_local};
    unlock();
    const Relock relock{*this};  // however the wait ends
    return with_comm_errors(
        [&] { return waiters_.wait(simulation_, told, {.at = deadline.count()}); });
  }

  void notify_all() override {
    touch();
    waiters_.wake_all(simulation_);
  }

 private:
  struct Relock {
    SimMonitor& monitor;
    ~Relock() { monitor.acquire(); }
  };

  // Ranks may share a monitor.
  void touch() { simulation_.touch(key_, sim::Access::kWrite); }

  void acquire() {
    touch();
    while (locked_) lockers_.wait(simulation_, {.what = "lock", .kind = sim::WaitKind::kCleanup});
    locked_ = true;
  }

  sim::Simulation& simulation_;
  sim::ObjectKey key_;
  bool locked_ = false;
  sim::WaitList lockers_;
  sim::WaitList waiters_;
};

class SimTask final : public Task {
 public:
  SimTask(sim::Simulation& simulation, std::shared_ptr<sim::Fiber> fiber)
      : simulation_(simulation), fiber_(std::move(fiber)) {}

  // A dead rank unwinds without the care that a living one must take.
  ~SimTask() override {
    const sim::Fiber* self = simulation_.current();
    DDPROOF_CHECK(joined_ || fiber_->killed() || (self != nullptr && self->killed()));
  }

  void join() override {
    simulation_.join(*fiber_);
    joined_ = true;
    if (fiber_->error()) std::rethrow_exception(fiber_->error());
  }

 private:
  sim::Simulation& simulation_;
  std::shared_ptr<sim::Fiber> fiber_;
  bool joined_ = false;
};

}  // namespace

SimRuntime::SimRuntime(sim::Simulation& simulation, int rank, FileSystem& files,
                       EnvironmentMap environment)
    : simulation_(simulation), rank_(rank), files_(files), environment_(std::move(environment)) {}

TimePoint SimRuntime::now() const {
  simulation_.note_poll(sim::WaitKind::kCall);
  return TimePoint(simulation_.now());
}

Duration SimRuntime::wall_clock() const {
  sim::FaultHook* faults = simulation_.faults();
  const Duration ahead(faults == nullptr ? 0 : faults->on_wall_clock(rank_));
  return kStartOfWallClock + now() + ahead;
}

void SimRuntime::sleep_for(Duration duration) {
  with_comm_errors([&] { simulation_.sleep(duration.count()); });
}

void SimRuntime::charge(Duration compute_cost) {
  with_comm_errors([&] { simulation_.sleep(compute_cost.count(), "compute"); });
}

std::unique_ptr<Task> SimRuntime::spawn(std::string name, std::function<void()> body) {
  return std::make_unique<SimTask>(simulation_,
                                   simulation_.spawn(rank_, std::move(name), std::move(body)));
}

std::unique_ptr<Monitor> SimRuntime::make_monitor() {
  return std::make_unique<SimMonitor>(simulation_);
}

void SimRuntime::begin_operation(std::string_view what, const CallSite& site,
                                 const MeetingCall& meeting) {
  simulation_.begin_operation(what, site.file, site.line, {meeting.ranks, meeting.words});
}

std::uint64_t SimRuntime::random_u64() { return simulation_.random_u64(rank_); }

std::optional<std::string> SimRuntime::MapEnvironment::get(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> SimRuntime::MapEnvironment::all() const {
  std::vector<std::string> result;
  for (const auto& [name, value] : variables_) result.push_back(name + "=" + value);
  return result;
}

void SimRuntime::meet(sim::RankFate fate) { simulation_.meet(rank_, fate); }

}  // namespace ddproof
