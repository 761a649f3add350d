#include "simulator/plan_faults.h"

#include <algorithm>

#include "simulator/check.h"

namespace ddproof::sim {

PlanFaults::PlanFaults(FaultPlan plan) : plan_(std::move(plan)), has_fired_(plan_.size(), 0) {
  for (const Fault& fault : plan_) texts_.push_back(to_string(fault));
}

void PlanFaults::fire(std::size_t index) {
  if (std::exchange(has_fired_[index], 1) != 0) return;
  SIM_CHECK(simulation_ != nullptr);
  fired_.push_back(index);
  const Fault& fault = plan_[index];
  const int rank = fault.kind == FaultKind::kPartition ? fault.ranks.front() : fault.rank;
  simulation_->record(EventKind::kFault, rank, -1, index + 1, texts_[index]);
}

FaultPlan PlanFaults::fired() const {
  FaultPlan result;
  for (const std::size_t index : fired_) result.push_back(plan_[index]);
  return result;
}

void PlanFaults::add_to(MessageFate& fate, std::size_t index, std::uint64_t bytes) {
  const Fault& fault = plan_[index];
  switch (fault.kind) {
    case FaultKind::kDelay: fate.delay = add_time(fate.delay, fault.time); break;
    case FaultKind::kDrop: fate.drop = true; break;
    case FaultKind::kDuplicate: fate.duplicate = true; break;
    case FaultKind::kReorder: fate.overtaken_within = fault.time; break;
    case FaultKind::kTruncate:
      if (fault.amount >= bytes) return;
      fate.bytes_max = std::min(fate.bytes_max, fault.amount);
      break;
    case FaultKind::kFlip:
      if (bytes == 0) return;
      fate.flipped_bit = fault.amount;
      break;
    default: return;
  }
  fire(index);
}

void PlanFaults::part(MessageFate& fate, std::size_t index, int from, int to) {
  const Fault& fault = plan_[index];
  const Time now = simulation_->now();
  const auto inside = [&](int rank) { return std::ranges::binary_search(fault.ranks, rank); };
  if (now < fault.start || now >= fault.end || inside(from) == inside(to)) return;
  fire(index);
  if (fault.end == kNever) {
    fate.drop = true;
  } else {
    fate.delay = add_time(fate.delay, fault.end - now);
  }
}

MessageFate PlanFaults::on_message(int from, int to, std::uint64_t bytes, std::uint64_t) {
  if (plan_is_over_) return {};
  const std::uint64_t number = ++messages_[{from, to}];
  MessageFate fate;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const Fault& fault = plan_[i];
    if (fault.kind == FaultKind::kPartition) {
      part(fate, i, from, to);
    } else if (fault.kind == FaultKind::kSlow) {
      if (fault.rank != from || fault.time == 0) continue;
      fate.delay = add_time(fate.delay, fault.time);
      fire(i);
    } else if (fault.rank == from && fault.peer == to && fault.number == number) {
      add_to(fate, i, bytes);
    }
  }
  return fate;
}

RankFate PlanFaults::on_operation(int rank, std::uint64_t number) {
  RankFate fate = RankFate::kLives;
  if (plan_is_over_) return fate;
  for (std::size_t i = 0; i < plan_.size() && fate == RankFate::kLives; ++i) {
    const Fault& fault = plan_[i];
    if (fault.rank != rank || fault.number != number) continue;
    if (fault.kind == FaultKind::kCrash) fate = RankFate::kCrashes;
    if (fault.kind == FaultKind::kHang) fate = RankFate::kHangs;
    if (fate != RankFate::kLives) fire(i);
  }
  return fate;
}

Time PlanFaults::on_sleep(int rank, Time duration) {
  if (plan_is_over_) return duration;
  for (std::size_t i = 0; i < plan_.size() && duration > 0; ++i) {
    const Fault& fault = plan_[i];
    if (fault.kind != FaultKind::kSlow || fault.rank != rank || fault.amount == 1) continue;
    const auto longer = static_cast<unsigned __int128>(duration) * fault.amount;
    duration = longer < static_cast<unsigned __int128>(kNever) ? static_cast<Time>(longer) : kNever;
    fire(i);
  }
  return duration;
}

Time PlanFaults::on_wall_clock(int rank) {
  if (plan_is_over_) return 0;
  Time ahead = 0;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const Fault& fault = plan_[i];
    if (fault.kind != FaultKind::kClockJump || fault.rank != rank) continue;
    if (simulation_->now() < fault.start) continue;
    ahead += fault.time;
    fire(i);
  }
  return ahead;
}

WriteFate PlanFaults::on_write(int rank, std::uint64_t number) {
  if (plan_is_over_) return {};
  WriteFate fate;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const Fault& fault = plan_[i];
    if (fault.rank != rank || fault.number != number) continue;
    if (fault.kind == FaultKind::kFullDisk) {
      disk_is_full_ = true;
      fire(i);
    } else if (fault.kind == FaultKind::kShortWrite) {
      fate = {true, fault.amount, "input/output error"};
      fire(i);
    }
  }
  if (disk_is_full_) fate = {true, 0, "no space left on the disk"};
  return fate;
}

bool PlanFaults::on_sync(int rank, std::uint64_t number) {
  if (plan_is_over_) return false;
  bool fails = false;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const Fault& fault = plan_[i];
    if (fault.kind != FaultKind::kFailedSync || fault.rank != rank || fault.number != number)
      continue;
    fails = true;
    fire(i);
  }
  return fails;
}

std::optional<std::uint64_t> PlanFaults::on_disk_change(int rank, std::uint64_t number) {
  if (plan_is_over_) return std::nullopt;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const Fault& fault = plan_[i];
    if (fault.kind != FaultKind::kPowerCut || fault.rank != rank || fault.number != number)
      continue;
    fire(i);
    return fault.amount;
  }
  return std::nullopt;
}

}  // namespace ddproof::sim
