// How a Simulation asks for progress once the faults are over: see liveness.h.
#include "simulator/liveness.h"

#include <algorithm>
#include <iterator>
#include <set>
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
  } else if (const std::vector<int> late = late_ranks(false); !late.empty()) {
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

// The ranks of the core that made no progress in time, or can make none any more.
std::vector<int> Simulation::late_ranks(bool nothing_can_happen) const {
  std::vector<int> late;
  std::ranges::copy_if(liveness_->core, std::back_inserter(late), [&](int rank) {
    return owes_progress(rank) && (nothing_can_happen || due_at(rank) <= now_);
  });
  return late;
}

// These, and those that they wait for, directly or not, that make no progress either.
std::vector<LateRank> Simulation::explain(std::vector<int> late, bool nothing_can_happen) const {
  std::vector<LateRank> told;
  std::set<int> known(late.begin(), late.end());
  for (std::size_t i = 0; i < late.size(); ++i) {
    std::vector<const Fiber*> waiting;
    for (const auto& fiber : fibers_) {
      if (fiber->rank_ == late[i] && can_deadlock(*fiber)) waiting.push_back(fiber.get());
    }
    const Time since = ranks_[static_cast<std::size_t>(late[i])].progress_at;
    told.push_back({late[i], since, waits_of(waiting)});
    for (const RankWait& wait : told.back().waits) {
      for (const int rank : wait.ranks) {
        const bool is_late = owes_progress(rank) && (nothing_can_happen || due_at(rank) <= now_);
        if (is_late && known.insert(rank).second) late.push_back(rank);
      }
    }
  }
  return told;
}

// Of those that are told: who holds up the others, or is held up by nobody who is to blame. A rank
// that makes progress is not, nor one that has returned when what it sent may have been lost.
std::set<int> Simulation::roots_of(const std::vector<LateRank>& told) const {
  std::set<int> late;
  for (const LateRank& rank : told) late.insert(rank.rank);
  std::set<int> roots;
  std::set<int> innocent;
  std::vector<RankWait> waits;
  for (const LateRank& rank : told) {
    if (rank.waits.empty() || rank.waits.front().ranks.empty()) {
      roots.insert(rank.rank);
      continue;
    }
    for (const RankWait& wait : rank.waits) {
      waits.push_back(wait);
      std::ranges::copy_if(wait.ranks, std::inserter(innocent, innocent.end()), [&](int other) {
        if (late.contains(other) || !is_alive(other)) return false;
        return owes_progress(other) || lost_messages_ > 0;
      });
    }
  }
  roots.merge(find_roots(waits, innocent));
  return roots;
}

void Simulation::give_liveness_verdict(const std::vector<int>& late, bool nothing_can_happen) {
  if (report_.verdict != Verdict::kNone) return;
  std::vector<LateRank> told = explain(late, nothing_can_happen);
  std::set<int> roots = roots_of(told);
  report_.verdict_culprits.assign(roots.begin(), roots.end());
  const auto behind = std::stable_partition(
      told.begin(), told.end(), [&](const LateRank& rank) { return roots.erase(rank.rank) > 0; });
  report_.verdict = Verdict::kLiveness;
  report_.verdict_text = describe_liveness(now_, *liveness_, nothing_can_happen, told,
                                           static_cast<std::size_t>(behind - told.begin()));
  for (const int rank : roots) {  // that have ended
    report_.verdict_text += "; rank " + std::to_string(rank) + " " + fate_of(rank);
  }
  record(EventKind::kLiveness, -1, -1, 0, report_.verdict_text);
  if (observer_ != nullptr) observer_->on_verdict();
}

}  // namespace ddproof::sim
