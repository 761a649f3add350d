// What a Simulation does when no fiber can run and no event is left, how it tells who is stuck, and
// how it ends.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "simulator/check.h"
#include "simulator/crossed_calls.h"
#include "simulator/simulation.h"
#include "simulator/verdict.h"

namespace ddproof::sim {
namespace {

// The unwinding allowance after the event limit: enough for destructors, not for another livelock.
constexpr std::uint64_t kUnwindEvents = 1'000'000;

bool knows_for_whom(const WaitReason& reason) {
  return reason.ranks != nullptr && !reason.ranks->empty();
}

}  // namespace

// Waits, and not for work, and its rank neither died nor fell silent.
bool Simulation::can_deadlock(const Fiber& fiber) const {
  return fiber.state_ == Fiber::State::kWaiting && fiber.reason_->kind != WaitKind::kIdle &&
         !fiber.killed_ && !fiber.hung_;
}

RankWait Simulation::wait_of(const Fiber& fiber) {
  const WaitReason& reason = *fiber.reason_;
  const WaitReason& told = fiber.activity_.what.empty() ? reason : fiber.activity_;
  RankWait wait{.rank = fiber.rank_,
                .what = std::string(told.what),
                .site = format_site(told.file, told.line),
                .ranks = {},
                .any = reason.any,
                .meeting = told.meeting.ranks,
                .call = std::string(told.meeting.words),
                .gathers = reason.gathers};
  if (knows_for_whom(reason)) wait.ranks = *reason.ranks;
  return wait;
}

bool Simulation::is_unwinding(const Fiber& fiber) const {
  return fiber.context_->uncaught_exceptions() > 0;
}

// One step towards the end; false when every fiber has ended.
bool Simulation::at_quiescence() {
  if (fibers_.empty()) return false;
  const bool blocked = std::any_of(fibers_.begin(), fibers_.end(),
                                   [this](const auto& fiber) { return can_deadlock(*fiber); });
  if (blocked) {
    if (report_.verdict == Verdict::kNone) give_stuck_verdict();
    if (interrupt_deadlocked(RankMarks(ranks_.size()))) return true;
    blame_deadlock();
  }
  return kill_all() || abandon_all();
}

// What a rank waits for. Its fibers often wait for each other; those that wait for other ranks are
// the cause.
std::vector<RankWait> Simulation::waits_of(const std::vector<const Fiber*>& fibers) {
  std::vector<const Fiber*> blocked = fibers;
  std::ranges::sort(blocked, {}, [](const Fiber* fiber) {
    return std::pair(!knows_for_whom(*fiber->reason_), fiber->id_);
  });
  std::vector<RankWait> waits;
  for (const Fiber* fiber : blocked) {
    if (waits.empty() || knows_for_whom(*fiber->reason_)) waits.push_back(wait_of(*fiber));
  }
  return waits;
}

// After the faults are over it is the core's progress that is missed.
void Simulation::give_stuck_verdict() {
  if (faults_stopped_) {
    const std::vector<int> late = late_ranks(true);
    if (!late.empty()) return give_liveness_verdict(late, true);
  }
  give_deadlock_verdict(RankMarks(ranks_.size()));
}

// Of a rank that does not wait.
std::string Simulation::fate_of(int rank) const {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (state.crashed) return "crashed at " + format_time(state.died_at);
  if (state.hung) return "hangs since " + format_time(state.died_at);
  return state.report.error ? "has failed" : "has returned";
}

// Those that are not `going` are stuck, or have ended.
void Simulation::give_deadlock_verdict(const RankMarks& going) {
  std::map<int, std::vector<const Fiber*>> blocked;
  std::vector<RankWait> elsewhere;
  for (const auto& fiber : fibers_) {
    if (!can_deadlock(*fiber)) continue;
    if (going.has(fiber->rank_)) {
      elsewhere.push_back(wait_of(*fiber));
    } else {
      blocked[fiber->rank_].push_back(fiber.get());
    }
  }
  std::vector<RankWait> waits;
  for (const auto& [rank, fibers] : blocked) {
    for (RankWait& wait : waits_of(fibers)) waits.push_back(std::move(wait));
  }
  std::vector<std::string> fates;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) fates.push_back(fate_of(rank));
  const std::vector<std::string_view> views(fates.begin(), fates.end());
  DeadlockCause cause = find_cause(waits, elsewhere);
  if (lost_messages_ > 0 && !cause.culprits_ended) cause.culprits.clear();
  report_.verdict = Verdict::kDeadlock;
  if (auto odd = lost_messages_ > 0 ? std::nullopt : find_crossed_calls(waits)) {
    report_.verdict = Verdict::kMismatch;
    cause.culprits = std::move(*odd);
    cause.culprits_ended = false;
  }
  report_.verdict_text = report_.verdict == Verdict::kMismatch ? "mismatch" : "deadlock";
  report_.verdict_text += describe_deadlock(now_, std::move(waits), cause, views);
  if (lost_messages_ > 0) {
    report_.verdict_text += "; faults lost messages: " + std::to_string(lost_messages_);
  }
  report_.verdict_culprits = std::move(cause.culprits);
  report_.verdict_cores = std::move(cause.cores);
  record(EventKind::kDeadlock, -1, -1, 0, report_.verdict_text);
  if (observer_ != nullptr) observer_->on_verdict();
}

DeadlockError Simulation::deadlock_error() const {
  return {report_.verdict_text, report_.verdict_culprits, report_.verdict == Verdict::kMismatch};
}

// Ends ordinary waits with DeadlockError; false when there are none.
bool Simulation::interrupt_deadlocked(const RankMarks& going) {
  std::vector<Fiber*> victims;
  for (const auto& fiber : fibers_) {
    if (going.has(fiber->rank_) || !can_deadlock(*fiber)) continue;
    if (fiber->reason_->kind != WaitKind::kCall) continue;
    if (!is_unwinding(*fiber)) victims.push_back(fiber.get());
  }
  std::sort(victims.begin(), victims.end(),
            [](const Fiber* a, const Fiber* b) { return a->id_ < b->id_; });
  for (Fiber* fiber : victims) make_ready(*fiber, Fiber::WakeUp::kDeadlock);
  return !victims.empty();
}

// What is still blocked cannot be told; so its rank's report is, unless its main threw something.
void Simulation::blame_deadlock() {
  const auto error = std::make_exception_ptr(deadlock_error());
  for (const auto& fiber : fibers_) {
    if (!can_deadlock(*fiber)) continue;
    std::exception_ptr& told = state_of(fiber->rank_).report.error;
    if (!told) told = error;
  }
}

// The first time everybody unwinds; the second time, what still goes on is abandoned.
void Simulation::stop_at_event_limit() {
  const std::uint64_t event_count_max = std::exchange(event_count_max_, events_ + kUnwindEvents);
  if (stopped_) {
    abandon_all();
    return;
  }
  if (report_.verdict == Verdict::kNone) {
    report_.verdict = Verdict::kEventLimit;
    report_.verdict_text = "event limit of " + std::to_string(event_count_max) +
                           " reached at t=" + format_time(now_) +
                           ": the ranks go round in circles, or the limit is too low";
  }
  record(EventKind::kEventLimit, -1);
  if (observer_ != nullptr) observer_->on_verdict();
  stopped_ = true;
  kill_all();
}

bool Simulation::kill_all() {
  return kill([](const Fiber&) { return true; });
}

// Unwinds those of them that can be unwound; false when there is none.
bool Simulation::kill(const std::function<bool(const Fiber&)>& is_chosen) {
  std::vector<Fiber*> victims;
  for (const auto& fiber : fibers_) {
    if (!is_chosen(*fiber) || std::exchange(fiber->killed_, true)) continue;
    victims.push_back(fiber.get());
  }
  std::sort(victims.begin(), victims.end(),
            [](const Fiber* a, const Fiber* b) { return a->id_ < b->id_; });
  for (Fiber* fiber : victims) {
    const bool asleep =
        fiber->state_ == Fiber::State::kWaiting || fiber->state_ == Fiber::State::kFrozen;
    if (asleep) make_ready(*fiber, Fiber::WakeUp::kKilled);
  }
  return !victims.empty();
}

// The last resort: what is left neither runs nor unwinds. Stacks stay mapped until the end.
bool Simulation::abandon_all() {
  report_.abandoned += fibers_.size();
  for (const auto& fiber : fibers_) {
    fiber->state_ = Fiber::State::kEnded;
    if (fiber->is_main_) state_of(fiber->rank_).report.outcome = RankOutcome::kStopped;
    if (deadlines_.has(*fiber)) deadlines_.remove(*fiber);
    if (patience_.has(*fiber)) patience_.remove(*fiber);
  }
  ready_ = {};
  std::move(fibers_.begin(), fibers_.end(), std::back_inserter(abandoned_));
  fibers_.clear();
  return false;
}

Report Simulation::make_report() {
  report_.digest = digest_.value();
  report_.virtual_time = now_;
  report_.switches = switches_;
  report_.events = events_;
  for (RankState& state : ranks_) {
    if (state.report.error) state.report.outcome = RankOutcome::kThrew;
    if (state.hung) state.report.outcome = RankOutcome::kHung;
    if (state.crashed) state.report.outcome = RankOutcome::kCrashed;
    report_.messages += state.report.messages_sent;
    report_.bytes += state.report.bytes_sent;
    report_.ranks.push_back(state.report);
  }
  return std::move(report_);
}

}  // namespace ddproof::sim
