// How a Simulation asks for progress once the faults are over: see liveness.h.
#include "simulator/liveness.h"

#include <algorithm>
#include <string>
#include <utility>

#include "simulator/simulation.h"
#include "simulator/verdict.h"

namespace ddproof::sim {

// When there is something to do about liveness; `next_event` is what happens else.
Time Simulation::next_liveness(Time next_event) const {
  if (liveness_ == nullptr || fibers_.empty()) return kNever;
  if (!faults_stopped_) return liveness_->faults_stop;
  return next_event == kNever ? kNever : next_check_;
}

void Simulation::meet_liveness() {
  if (!std::exchange(faults_stopped_, true)) {
    stop_faults();
  } else if (const std::vector<int> late = late_ranks(); !late.empty()) {
    give_liveness_verdict(late, false);
    stopped_ = true;
    kill_all();
  }
  next_check_ = kNever;
  for (const int rank : liveness_->core) {
    if (owes_progress(rank)) next_check_ = std::min(next_check_, due_at(rank));
  }
}

void Simulation::stop_faults() {
  record(EventKind::kHeal, -1);
  if (faults_ != nullptr) faults_->stop();
  for (const int rank : liveness_->core) {
    if (!std::exchange(state_of(rank).hung, false)) continue;
    touch(kEverything, Access::kWrite);
    record(EventKind::kHeal, rank);
    for (const auto& fiber : fibers_) {
      if (fiber->rank_ != rank) continue;
      fiber->hung_ = false;
      if (fiber->state_ == Fiber::State::kFrozen) make_ready(*fiber, fiber->wake_up_);
    }
  }
}

Time Simulation::due_at(int rank) const {
  const Time since = ranks_[static_cast<std::size_t>(rank)].progress_at;
  return add_time(std::max(since, liveness_->faults_stop), liveness_->within);
}

// It lives, and its main has something left to do.
bool Simulation::owes_progress(int rank) const {
  if (!is_alive(rank)) return false;
  return std::ranges::any_of(fibers_, [rank](const auto& fiber) {
    if (fiber->rank_ != rank || !fiber->is_main_) return false;
    return fiber->reason_ == nullptr || fiber->reason_->kind != WaitKind::kIdle;
  });
}

std::vector<int> Simulation::late_ranks() const {
  std::vector<int> late;
  std::ranges::copy_if(liveness_->core, std::back_inserter(late),
                       [this](int rank) { return owes_progress(rank) && due_at(rank) <= now_; });
  return late;
}

void Simulation::give_liveness_verdict(const std::vector<int>& late, bool nothing_can_happen) {
  if (report_.verdict != Verdict::kNone) return;
  std::vector<LateRank> told;
  for (const int rank : late) {
    std::vector<const Fiber*> waiting;
    for (const auto& fiber : fibers_) {
      if (fiber->rank_ == rank && can_deadlock(*fiber)) waiting.push_back(fiber.get());
    }
    told.push_back({rank, state_of(rank).progress_at, waits_of(waiting)});
  }
  report_.verdict = Verdict::kLiveness;
  report_.verdict_text = describe_liveness(now_, *liveness_, nothing_can_happen, told);
  report_.verdict_culprits = late;
  record(EventKind::kLiveness, -1, -1, 0, report_.verdict_text);
  if (observer_ != nullptr) observer_->on_verdict();
}

}  // namespace ddproof::sim
