// Makes a FaultPlan happen, and notes which of its faults did.
//
// Threads: that of the Simulation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/fault.h"
#include "simulator/fault_plan.h"
#include "simulator/simulation.h"

namespace ddproof::sim {

class PlanFaults final : public FaultHook {
 public:
  explicit PlanFaults(FaultPlan plan);

  // The run that the plan is for: its clock, and where events are recorded. Call before run();
  // `simulation` must outlive the run.
  void watch(Simulation& simulation) { simulation_ = &simulation; }

  void stop() override { plan_is_over_ = true; }
  MessageFate on_message(int from, int to, std::uint64_t bytes, std::uint64_t number) override;
  RankFate on_operation(int rank, std::uint64_t number) override;
  Time on_sleep(int rank, Time duration) override;
  Time on_wall_clock(int rank) override;
  WriteFate on_write(int rank, std::uint64_t number) override;
  bool on_sync(int rank, std::uint64_t number) override;
  std::optional<std::uint64_t> on_disk_change(int rank, std::uint64_t number) override;

  // The faults that had an effect, in the order in which they first had it; each is an event of
  // the run too (EventKind::kFault).
  FaultPlan fired() const;

 private:
  void fire(std::size_t index);
  void add_to(MessageFate& fate, std::size_t index, std::uint64_t bytes);
  void part(MessageFate& fate, std::size_t index, int from, int to);

  FaultPlan plan_;
  std::vector<std::string> texts_;
  std::vector<char> has_fired_;
  std::vector<std::size_t> fired_;
  Simulation* simulation_ = nullptr;
  std::map<std::pair<int, int>, std::uint64_t> messages_;  // so far, by sender and receiver
  bool disk_is_full_ = false;
  bool plan_is_over_ = false;
};

}  // namespace ddproof::sim
