// The simulator's core: fibers of many ranks on one thread, virtual time, one event at a time, one
// source of choices.
//
// Invariants:
//   I1  now() never goes back.
//   I2  Events run in (time, sequence) order; at one point in time, first the events that are due,
//       then fibers until all of them wait, and when nothing more is due, what was left for the end
//       of that time.
//   I3  Every choice comes from the Scheduler, every rank's randomness from a stream of its own;
//       both from the seed. So program, scheduler and seed fix the run.
//   I4  digest() folds in every event. Equal digests mean equal runs.
//   I5  run() always returns: when all fibers have ended, after a deadlock (nothing that can still
//       happen would end the waits of some ranks) soon, and at the event limit.
//
// What a deadlock does: every fiber of a stuck rank in a call gets DeadlockError out of its wait,
// so that destructors run and everybody learns the verdict. Ranks that could go on are stopped, as
// at the event limit. What the death of a rank does: each of its fibers gets RankKilled out of its
// wait, now and in every later wait. No exception ends a wait for a lock or a join
// (WaitKind::kCleanup) or a wait that a fiber makes while it unwinds: both belong to destructors,
// which must not throw. A fiber that nothing else ends is abandoned, and the report counts it; its
// rank's error is the verdict.
//
// Threads: a Simulation is used by one thread. Nothing here is global: many Simulations may run
// side by side on many threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/event.h"
#include "simulator/event_queue.h"
#include "simulator/fault.h"
#include "simulator/fiber.h"
#include "simulator/liveness.h"
#include "simulator/random.h"
#include "simulator/rank_marks.h"
#include "simulator/report.h"
#include "simulator/run_queue.h"
#include "simulator/scheduler.h"
#include "simulator/stack.h"
#include "simulator/step_observer.h"
#include "simulator/time.h"
#include "simulator/timer_heap.h"
#include "simulator/wait.h"
#include "simulator/wait_graph.h"

namespace ddproof::sim {

struct LateRank;

// All pointers are borrowed for the life of the Simulation; null takes the stated default.
struct SimulationOptions {
  int ranks = 1;
  std::uint64_t seed = 0;
  std::uint64_t event_count_max = 10'000'000'000;
  bool patience_runs_out = false;      // true: no deadlock verdict while any deadline is left
  Scheduler* scheduler = nullptr;      // RoundRobin
  FaultHook* faults = nullptr;         // no faults
  TraceSink* trace = nullptr;          // no trace
  StackPool* stacks = nullptr;         // one of its own; pass one to reuse stacks over many runs
  StepObserver* observer = nullptr;    // nobody
  const Liveness* liveness = nullptr;  // no progress is asked for
};

// Marks the ranks that a pending event may wake, by its argument.
using EventRanks = std::function<void(std::uint64_t argument, RankMarks& ranks)>;

class Simulation {
 public:
  // Throws std::invalid_argument unless options.ranks > 0.
  explicit Simulation(const SimulationOptions& options);
  // Fibers that never ran are dropped. Requires: run() is not in progress.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Makes a fiber of a rank; the rank's first one is its main. It runs when the scheduler says so.
  // Requires: 0 <= rank < ranks.
  std::shared_ptr<Fiber> spawn(int rank, std::string name, std::function<void()> body);
  // Runs until every fiber has ended (I5). Call once. Never throws what fibers throw: see Report.
  Report run();

  int ranks() const { return static_cast<int>(ranks_.size()); }
  Time now() const { return now_; }
  std::uint64_t digest() const { return digest_.value(); }
  Scheduler& scheduler() { return *scheduler_; }
  FaultHook* faults() { return faults_; }
  // The next bits of the rank's own stream, whatever the schedule.
  std::uint64_t random_u64(int rank) { return state_of(rank).random.next(); }
  bool is_alive(int rank) const { return !has_crashed(rank) && !is_hung(rank); }
  bool has_crashed(int rank) const { return ranks_[static_cast<std::size_t>(rank)].crashed; }
  bool is_hung(int rank) const { return ranks_[static_cast<std::size_t>(rank)].hung; }
  // For those who count what the rank does.
  RankReport& report_of(int rank) { return state_of(rank).report; }

  // The fiber that runs, or null outside of fibers.
  Fiber* current() const { return current_; }
  // Counts and digests an event, and gives it to the trace.
  void record(EventKind kind, int rank, int peer = -1, std::uint64_t value = 0,
              std::string_view label = {}) {
    ++events_;
    const Event event{now_,  kind, rank, peer, current_ == nullptr ? 0 : current_->id_,
                      value, label};
    digest_.add(event);
    if (trace_ != nullptr) trace_->on_event(event);
  }
  // A key for something that ranks share. Call it where the object is made.
  ObjectKey new_object() {
    Fiber* maker = current_;
    return maker == nullptr ? mix64(++objects_made_ << 8)
                            : mix64(maker->key_ + (++maker->objects_made_ << 8));
  }
  // States that the running step uses a shared object; see StepObserver.
  void touch(ObjectKey object, Access access) {
    if (observer_ != nullptr) observer_->on_touch(object, access);
  }
  // False: nobody hears of touches, so what to touch need not be found out.
  bool is_observed() const { return observer_ != nullptr; }
  // States that what happens now is nothing that touches can describe.
  void note_uncovered(std::string_view what) {
    if (observer_ != nullptr) observer_->on_uncovered(what);
  }
  // Runs `action` at `time` on no fiber's stack: it must not wait. Requires: time >= now().
  void schedule(Time time, const Action& action);
  // States whom the events with this target concern, for as long as they are pending. Unless that
  // is stated, nobody counts as stuck while there are any.
  void explain_events(const void* target, EventRanks ranks);
  // Runs `action` like an event, before time passes, when all fibers wait and nothing more is due
  // now. What it sees has happened by now in every order of fibers; it may schedule for now.
  void at_end_of_time(const Action& action) { end_of_time_.push_back(action); }

  // --- From a fiber only ---

  // Waits until wake(). False when the deadline passed. Wake-ups may be spurious: loop.
  // Throws DeadlockError and RankKilled as the reason's kind says.
  bool wait(const WaitReason& reason, Deadline deadline = {});
  // Returns when virtual time has passed; at zero or less, lets others run first.
  void sleep(Time duration, std::string_view what = "sleep");
  // To be called by what a program may poll in a loop (clocks, locks): lets time pass now and then,
  // so that a loop without a wait ends or meets the event limit. May throw like wait() of the same
  // kind; a dead rank's fiber that polls on where it may not throw is abandoned.
  void note_poll(WaitKind kind);
  // Returns when `fiber` has ended. Does not look at its error.
  void join(Fiber& fiber);
  // States which operation the running fiber is in: traces and verdicts print it. Asks the fault
  // hook, so it may throw RankKilled. The texts must stay valid until the next call.
  void begin_operation(std::string_view what, const char* file, int line,
                       const MeetingCall& meeting = {});
  // What the running fiber is in; empty text: nothing.
  const WaitReason& operation() const { return current_->activity_; }

  // --- From a fiber or an action ---

  // Counts that something happened that tests want to happen: see Report::probes.
  void hit(std::string_view probe);
  // A fault swallowed a message: who waits for it has done nothing wrong.
  void note_lost_message() { ++lost_messages_; }
  // Makes a waiting fiber runnable; does nothing otherwise.
  void wake(Fiber& fiber);
  // The rank dies: observers are told, then its fibers unwind. Throws RankKilled when it is the
  // running fiber's own rank. Does nothing to a dead rank.
  void crash(int rank);
  // The rank falls silent: its fibers never run again. Unwound when the run is over.
  void hang(int rank);
  // crash(), hang() or nothing.
  void meet(int rank, RankFate fate);
  // `observer(rank)` is called in crash(), before anything unwinds.
  void on_crash(std::function<void(int rank)> observer);

 private:
  struct RankState {
    SplitMix64 random{0};
    RankReport report;
    std::uint64_t operations = 0;
    bool has_main = false;
    bool crashed = false;
    bool hung = false;
    Time died_at = 0;
    Time progress_at = 0;  // when it last began an operation
  };

  RankState& state_of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  static void fiber_entry(void* fiber);
  void run_body(Fiber& fiber);
  Fiber* choose_next();
  void prefetch_next() const;
  void start_running(Fiber& fiber);
  void give_way();
  void retire(Fiber& fiber);
  bool fire_due();
  bool end_this_time();
  void make_ready(Fiber& fiber, Fiber::WakeUp wake_up);
  void note_where_it_struck(std::string_view what, int rank);
  void throw_if_killed(Fiber& fiber, WaitKind kind);
  void sleep_until(Time end, const WaitReason& reason);
  void forget_for_ever(Fiber& fiber);
  void meet_deadline(Fiber& fiber);
  Time next_patience(Time until);
  void set_deadline(Fiber& fiber, Deadline deadline);

  // Quiescence: quiescence.cc.
  bool at_quiescence();
  void give_stuck_verdict();
  std::string fate_of(int rank) const;
  void give_deadlock_verdict(const RankMarks& going);
  DeadlockError deadlock_error() const;
  bool interrupt_deadlocked(const RankMarks& going);
  void blame_deadlock();
  void stop_at_event_limit();
  bool kill(const std::function<bool(const Fiber&)>& is_chosen);
  bool kill_all();
  bool abandon_all();
  bool can_deadlock(const Fiber& fiber) const;
  bool is_unwinding(const Fiber& fiber) const;
  static RankWait wait_of(const Fiber& fiber);
  static std::vector<RankWait> waits_of(const std::vector<const Fiber*>& fibers);
  Report make_report();

  // Ranks that are stuck while others go on: partial_deadlock.cc.
  void look_for_stuck_ranks();
  bool mark_ranks_of_events(RankMarks& going) const;
  bool can_go_on(const Fiber& fiber) const;
  void spread(RankMarks& going) const;

  // Liveness: liveness.cc.
  Time next_liveness(Time next_event) const;
  void meet_liveness();
  void stop_faults();
  Time due_at(int rank) const;
  bool owes_progress(int rank) const;
  std::vector<int> late_ranks(bool nothing_can_happen) const;
  std::vector<LateRank> explain(std::vector<int> late, bool nothing_can_happen) const;
  std::set<int> roots_of(const std::vector<LateRank>& told) const;
  void give_liveness_verdict(const std::vector<int>& late, bool nothing_can_happen);

  Scheduler* scheduler_;
  FaultHook* faults_;
  TraceSink* trace_;
  StackPool* stacks_;
  StepObserver* observer_;
  const Liveness* liveness_;
  std::optional<RoundRobin> own_scheduler_;
  std::optional<StackPool> own_stacks_;
  std::uint64_t event_count_max_;
  bool patience_runs_out_;
  // A search sees orders of steps, not how many events there were; liveness has its own bound.
  bool looks_for_stuck_;

  Time now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t lost_messages_ = 0;  // by faults
  std::uint64_t fiber_count_ = 0;
  std::uint64_t objects_made_ = 0;  // outside of fibers
  std::uint64_t polls_ = 0;         // since the switch with the number polled_at_switch_
  std::uint64_t polled_at_switch_ = 0;
  std::uint64_t look_after_ = 0;  // events: for stuck ranks
  Time looked_at_ = 0;
  bool look_is_due_ = false;
  Digest digest_;
  EventQueue queue_;
  std::vector<Action> end_of_time_;
  TimerHeap deadlines_;
  TimerHeap patience_;
  RunQueue ready_;
  Fiber* current_ = nullptr;
  Context::Exceptions* exceptions_ = nullptr;  // of the thread that runs
  Context main_;  // run(), which is left while fibers switch from one to the next
  bool stopped_ = false;
  bool faults_stopped_ = false;
  Time next_check_ = kNever;  // of progress
  std::vector<RankState> ranks_;
  std::vector<std::function<void(int)>> crash_observers_;
  std::vector<std::pair<const void*, EventRanks>> event_ranks_;  // by target
  std::vector<std::shared_ptr<Fiber>> fibers_;                   // not ended
  std::vector<std::shared_ptr<Fiber>> abandoned_;  // with their stacks: others may point into them
  Report report_;
};

}  // namespace ddproof::sim
