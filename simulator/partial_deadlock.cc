// How a Simulation finds ranks that can never go on while others do.
//
// A look costs a step for each fiber and pending event, so looks are rare: after kEventsPerLook
// events for each of these; and where nothing but deadlines is left and time is about to pass by
// more than has passed since the last look, of which a run has as many as its virtual time has
// binary digits.
#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/simulation.h"

namespace ddproof::sim {
namespace {

constexpr std::uint64_t kEventsPerLook = 256;

}  // namespace

void Simulation::explain_events(const void* target, EventRanks ranks) {
  event_ranks_.emplace_back(target, std::move(ranks));
}

// False when there is an event of which nobody says whom it concerns.
bool Simulation::mark_ranks_of_events(RankMarks& going) const {
  return std::ranges::all_of(queue_.entries(), [&](const EventQueue::Entry& entry) {
    const auto owner = std::ranges::find(event_ranks_, entry.action.target,
                                         &std::pair<const void*, EventRanks>::first);
    if (owner == event_ranks_.end()) return false;
    owner->second(entry.action.argument, going);
    return true;
  });
}

// It can run, a deadline will end its wait, or it does not say who could.
bool Simulation::can_go_on(const Fiber& fiber) const {
  switch (fiber.state_) {
    case Fiber::State::kReady:
    case Fiber::State::kRunning: return !fiber.hung_ || fiber.killed_;
    case Fiber::State::kFrozen:
    case Fiber::State::kEnded: return false;
    case Fiber::State::kWaiting: break;
  }
  if (fiber.killed_) return true;
  if (fiber.hung_) return false;
  if (deadlines_.has(fiber)) return true;
  const WaitReason& reason = *fiber.reason_;
  return !reason.is_local && (reason.ranks == nullptr || reason.ranks->empty());
}

// From those that can go on to all whose waits they could end. One rank is enough for that, also
// where all of several are needed: it might leave, and then the wait ends with an error.
void Simulation::spread(RankMarks& going) const {
  std::vector<std::vector<int>> waited_for_by(ranks_.size());
  for (const auto& fiber : fibers_) {
    if (fiber->state_ != Fiber::State::kWaiting || fiber->hung_) continue;
    for (const auto* ranks : {fiber->reason_->ranks, fiber->reason_->may_leave}) {
      if (ranks == nullptr || going.has(fiber->rank_)) continue;
      for (const int rank : *ranks) {
        const auto index = static_cast<std::size_t>(rank);
        if (index < ranks_.size()) waited_for_by[index].push_back(fiber->rank_);
      }
    }
  }
  std::vector<int> sources = going.members();
  while (!sources.empty()) {
    const auto source = static_cast<std::size_t>(sources.back());
    sources.pop_back();
    for (const int rank : waited_for_by[source]) {
      if (going.add(rank)) sources.push_back(rank);
    }
  }
}

// Gives the verdict when there are ranks that nothing which can still happen would wake. It ends
// the run: the others would go on with a job that cannot end well.
void Simulation::look_for_stuck_ranks() {
  looked_at_ = now_;
  look_after_ = events_ + kEventsPerLook * (fibers_.size() + queue_.size());
  if (!looks_for_stuck_ || report_.verdict != Verdict::kNone) return;
  look_is_due_ = !end_of_time_.empty();  // it may wake anybody: look after it
  if (look_is_due_) return;
  RankMarks going(ranks_.size());
  if (!mark_ranks_of_events(going)) return;
  for (const auto& fiber : fibers_) {
    if (!going.has(fiber->rank_) && can_go_on(*fiber)) going.add(fiber->rank_);
  }
  const auto is_stuck = [&](const auto& fiber) {
    return !going.has(fiber->rank_) && can_deadlock(*fiber);
  };
  if (std::ranges::none_of(fibers_, is_stuck)) return;
  spread(going);
  if (std::ranges::none_of(fibers_, is_stuck)) return;
  give_deadlock_verdict(going);
  interrupt_deadlocked(going);
  kill([&](const Fiber& fiber) { return going.has(fiber.rank_); });
}

}  // namespace ddproof::sim
