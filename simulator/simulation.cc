#include "simulator/simulation.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "simulator/check.h"
#include "simulator/probes.h"

namespace ddproof::sim {
namespace {

// A dead rank's fiber that swallows so many RankKilled, or polls so long where none may be thrown,
// is left behind.
constexpr int kKillCountMax = 1000;

// A fiber that polls this often without ever waiting lets this much time pass.
constexpr std::uint64_t kPollsMax = 1000;
constexpr Time kPollTime = 1'000;

}  // namespace

Fiber::Fiber(Simulation& simulation, std::uint64_t id, int rank, std::string name,
             std::function<void()> body)
    : id_(id),
      rank_(rank),
      simulation_(simulation),
      name_(std::move(name)),
      body_(std::move(body)) {}

Simulation::Simulation(const SimulationOptions& options)
    : scheduler_(options.scheduler),
      faults_(options.faults),
      trace_(options.trace),
      stacks_(options.stacks),
      observer_(options.observer),
      liveness_(options.liveness),
      event_count_max_(options.event_count_max),
      patience_runs_out_(options.patience_runs_out),
      looks_for_stuck_(!patience_runs_out_ && observer_ == nullptr && liveness_ == nullptr),
      digest_(options.seed),
      deadlines_(&Fiber::deadline_place_),
      patience_(&Fiber::patience_place_) {
  if (options.ranks < 1) {
    throw std::invalid_argument("a simulation needs at least one rank, got " +
                                std::to_string(options.ranks));
  }
  if (scheduler_ == nullptr) scheduler_ = &own_scheduler_.emplace();
  if (stacks_ == nullptr) stacks_ = &own_stacks_.emplace();
  scheduler_->begin_run(options.seed);
  ranks_.resize(static_cast<std::size_t>(options.ranks));
  SplitMix64 seeds(options.seed);
  for (RankState& state : ranks_) state.random = SplitMix64(seeds.next());
}

Simulation::~Simulation() {
  SIM_CHECK(current_ == nullptr);
  for (const auto& fiber : fibers_) stacks_->release(fiber->stack_);
  for (const auto& fiber : abandoned_) stacks_->release(fiber->stack_);
}

std::shared_ptr<Fiber> Simulation::spawn(int rank, std::string name, std::function<void()> body) {
  SIM_CHECK(0 <= rank && rank < ranks());
  auto fiber =
      std::make_shared<Fiber>(*this, ++fiber_count_, rank, std::move(name), std::move(body));
  fiber->key_ = new_object();
  fiber->stack_ = stacks_->acquire();
  fiber->context_.emplace(fiber->stack_, &Simulation::fiber_entry, fiber.get());
  RankState& state = state_of(rank);
  fiber->is_main_ = !std::exchange(state.has_main, true);
  fiber->killed_ = state.crashed || stopped_;
  fiber->hung_ = state.hung;
  fiber->index_ = fibers_.size();
  fibers_.push_back(fiber);
  record(EventKind::kSpawn, rank, -1, fiber->id_, fiber->name_);
  ready_.push({fiber.get(), fiber->id_, rank});
  if (observer_ != nullptr) observer_->on_ready(*fiber);
  return fiber;
}

Report Simulation::run() {
  exceptions_ = Context::exceptions_of_this_thread();
  while (true) {
    if (Fiber* next = choose_next()) {
      start_running(*next);
      main_.switch_to(*next->context_, exceptions_);
      Fiber* last = std::exchange(current_, nullptr);  // who came back, not who was sent
      if (last != nullptr && last->ended()) retire(*last);
    } else if (events_ > event_count_max_) {
      stop_at_event_limit();
    } else if (events_ > look_after_) {
      look_for_stuck_ranks();
    } else if (!at_quiescence()) {
      return make_report();
    }
  }
}

// The fiber that runs next, after letting time pass if need be; null when run() has to decide.
Fiber* Simulation::choose_next() {
  while (events_ <= std::min(look_after_, event_count_max_)) {
    if (ready_.empty()) {
      if (observer_ != nullptr) observer_->on_all_wait();
      if (!fire_due()) return nullptr;
      continue;
    }
    const auto runnable = ready_.entries();
    std::size_t index = 0;
    if (runnable.size() > 1) {
      index = scheduler_->next(runnable);
      SIM_CHECK(index < runnable.size());
    }
    Fiber& fiber = *ready_.take(index).fiber;
    prefetch_next();
    if (!fiber.hung_ || fiber.killed_) return &fiber;
    fiber.state_ = Fiber::State::kFrozen;
    if (observer_ != nullptr) observer_->on_step(fiber);
  }
  return nullptr;
}

// With thousands of ranks a switch costs what its cache misses cost. Under first come, first served
// it is known who comes later: fetch the fiber of one early, and its stack when that has arrived.
void Simulation::prefetch_next() const {
  constexpr std::size_t kFiberAhead = 4, kStackAhead = 2;
  const auto waiting = ready_.entries();
  if (waiting.size() <= kFiberAhead) return;
  __builtin_prefetch(waiting[kFiberAhead].fiber);
  waiting[kStackAhead].fiber->context_->prefetch();
}

void Simulation::start_running(Fiber& fiber) {
  ++switches_;
  fiber.state_ = Fiber::State::kRunning;
  current_ = &fiber;
  record(EventKind::kRun, fiber.rank_);
  if (observer_ != nullptr) observer_->on_step(fiber);
}

// Lets others run until it is the running fiber's turn again. Straight to the next fiber: a detour
// over run() would double the price. Inlined, because each return after a switch is predicted
// wrong.
[[gnu::always_inline]] inline void Simulation::give_way() {
  Fiber& self = *std::exchange(current_, nullptr);
  Fiber* next = choose_next();
  if (next == nullptr) {
    self.context_->switch_to(main_, exceptions_);
    return;
  }
  start_running(*next);
  if (next != &self) self.context_->switch_to(*next->context_, exceptions_);
}

void Simulation::fiber_entry(void* fiber) {
  auto& self = *static_cast<Fiber*>(fiber);
  self.simulation_.run_body(self);
  self.context_->finish(self.simulation_.main_, self.simulation_.exceptions_);
}

void Simulation::run_body(Fiber& fiber) {
  try {
    const std::function<void()> body = std::exchange(fiber.body_, nullptr);
    if (!fiber.killed_) body();
  } catch (const RankKilled&) {
    SIM_CHECK(fiber.killed_);
    if (fiber.is_main_) state_of(fiber.rank_).report.outcome = RankOutcome::kStopped;
  } catch (...) {
    fiber.error_ = std::current_exception();
  }
  fiber.state_ = Fiber::State::kEnded;
}

void Simulation::retire(Fiber& fiber) {
  record(EventKind::kEnd, fiber.rank_, -1, fiber.id_);
  if (fiber.is_main_ && fiber.error_) state_of(fiber.rank_).report.error = fiber.error_;
  if (patience_.has(fiber)) patience_.remove(fiber);
  for (const auto& joiner : fiber.joiners_) wake(*joiner);
  fiber.joiners_.clear();
  fiber.context_.reset();
  stacks_->release(fiber.stack_);
  const std::size_t index = fiber.index_;
  std::swap(fibers_[index], fibers_.back());
  fibers_[index]->index_ = index;
  fibers_.pop_back();  // may destroy `fiber`
}

void Simulation::schedule(Time time, const Action& action) {
  SIM_CHECK(time >= now_);
  queue_.push({time, ++sequence_, action});
}

// Advances to the next point in time at which something is due and lets all of it happen.
bool Simulation::fire_due() {
  Time time = kNever;
  if (!queue_.empty()) time = queue_.first().time;
  if (!deadlines_.empty()) time = std::min(time, deadlines_.first().time);
  const bool can_happen = time != kNever || next_liveness(time) != kNever;
  if (can_happen || patience_runs_out_) time = std::min(time, next_patience(time));
  const Time check_at = next_liveness(time);
  if (std::min(time, check_at) != now_ && end_this_time()) return true;
  // What is due at the same time comes first: it may be the progress that is asked for.
  if (check_at < time) {
    now_ = check_at;
    meet_liveness();
    return true;
  }
  if (time == kNever) return false;
  if (look_is_due_ || (queue_.empty() && time - now_ > now_ - looked_at_)) {
    look_for_stuck_ranks();
    if (!ready_.empty()) return true;
  }
  now_ = time;
  while (!deadlines_.empty() && deadlines_.first().time == now_) {
    meet_deadline(*deadlines_.first().fiber);
  }
  while (next_patience(now_) == now_) meet_deadline(*patience_.first().fiber);
  while (!queue_.empty() && queue_.first().time == now_) {
    const Action action = queue_.pop().action;
    action.run(action.target, action.argument);
  }
  return true;
}

// False when there is nothing to do.
bool Simulation::end_this_time() {
  if (end_of_time_.empty()) return false;
  const std::vector<Action> actions = std::exchange(end_of_time_, {});
  for (const Action& action : actions) action.run(action.target, action.argument);
  return true;
}

void Simulation::meet_deadline(Fiber& fiber) {
  record(EventKind::kDeadline, fiber.rank_, -1, fiber.id_);
  make_ready(fiber, Fiber::WakeUp::kDeadline);
}

// When patience runs out first, or kNever if that is after `until`. Brings the heap up to date so
// far: a fiber's entry stays when its wait ends, for the next wait, which usually has a later
// deadline.
Time Simulation::next_patience(Time until) {
  while (!patience_.empty() && patience_.first().time <= until) {
    const TimerHeap::Entry first = patience_.first();
    Fiber& fiber = *first.fiber;
    const bool waits = fiber.state_ == Fiber::State::kWaiting;
    if (waits && fiber.patience_until_ == first.time) return first.time;
    patience_.remove(fiber);
    if (waits && fiber.patience_until_ != kNever) {
      patience_.set(fiber, fiber.patience_until_, ++sequence_);
    }
  }
  return kNever;
}

void Simulation::set_deadline(Fiber& fiber, Deadline deadline) {
  if (!deadline.is_patience) {
    deadlines_.set(fiber, deadline.at, ++sequence_);
    return;
  }
  fiber.patience_until_ = deadline.at;
  const bool has_entry = patience_.has(fiber);
  if (has_entry && patience_.time_of(fiber) <= deadline.at) return;
  if (has_entry) patience_.remove(fiber);
  patience_.set(fiber, deadline.at, ++sequence_);
}

void Simulation::make_ready(Fiber& fiber, Fiber::WakeUp wake_up) {
  if (deadlines_.has(fiber)) deadlines_.remove(fiber);
  fiber.state_ = Fiber::State::kReady;
  fiber.wake_up_ = wake_up;
  ready_.push({&fiber, fiber.id_, fiber.rank_});
  if (observer_ != nullptr) observer_->on_ready(fiber);
}

void Simulation::wake(Fiber& fiber) {
  const bool waits = fiber.state_ == Fiber::State::kWaiting;
  touch(fiber.key_, waits ? Access::kWrite : Access::kRead);
  if (waits) make_ready(fiber, Fiber::WakeUp::kNotified);
}

void Simulation::throw_if_killed(Fiber& fiber, WaitKind kind) {
  if (!fiber.killed_ || kind == WaitKind::kCleanup || std::uncaught_exceptions() > 0) return;
  if (++fiber.kill_count_ > kKillCountMax) forget_for_ever(fiber);
  throw RankKilled{};
}

// Parks a running fiber that cannot be ended; abandon_all() collects it.
void Simulation::forget_for_ever(Fiber& fiber) {
  while (true) {
    fiber.state_ = Fiber::State::kFrozen;
    give_way();
  }
}

bool Simulation::wait(const WaitReason& reason, Deadline deadline) {
  SIM_CHECK(current_ != nullptr);
  Fiber& self = *current_;
  throw_if_killed(self, reason.kind);
  if (deadline.at <= now_) return false;
  self.patience_until_ = kNever;
  if (deadline.at != kNever) set_deadline(self, deadline);
  self.reason_ = &reason;
  self.state_ = Fiber::State::kWaiting;
  const bool one_rank = reason.ranks != nullptr && reason.ranks->size() == 1;
  record(EventKind::kWait, self.rank_, one_rank ? reason.ranks->front() : -1, 0, reason.what);
  give_way();
  self.reason_ = nullptr;
  throw_if_killed(self, reason.kind);
  switch (self.wake_up_) {
    case Fiber::WakeUp::kDeadline: return false;
    case Fiber::WakeUp::kDeadlock: throw deadlock_error();
    case Fiber::WakeUp::kNotified:
    case Fiber::WakeUp::kKilled: return true;
  }
  return true;
}

void Simulation::sleep(Time duration, std::string_view what) {
  if (faults_ != nullptr) duration = faults_->on_sleep(current_->rank_, duration);
  const Time end = add_time(now_, std::max<Time>(duration, 0));
  if (end == now_) {  // a turn for the others
    Fiber& self = *current_;
    throw_if_killed(self, WaitKind::kCall);
    make_ready(self, Fiber::WakeUp::kNotified);
    give_way();
    throw_if_killed(self, WaitKind::kCall);
    return;
  }
  sleep_until(end, {.what = what});
}

void Simulation::sleep_until(Time end, const WaitReason& reason) {
  while (now_ < end) wait(reason, {.at = end});
}

void Simulation::note_poll(WaitKind kind) {
  if (current_ == nullptr) return;
  if (std::exchange(polled_at_switch_, switches_) != switches_) polls_ = 0;
  if (++polls_ % kPollsMax != 0) return;
  Fiber& self = *current_;
  if (self.killed_ && ++self.kill_count_ > kKillCountMax) forget_for_ever(self);
  sleep_until(add_time(now_, kPollTime), {.what = "polling", .kind = kind});
}

void Simulation::join(Fiber& fiber) {
  const WaitReason reason{
      .what = "join", .kind = WaitKind::kCleanup, .is_local = fiber.rank_ == current_->rank_};
  touch(fiber.key_, Access::kRead);
  while (!fiber.ended()) {
    fiber.joiners_.push_back(fibers_[current_->index_]);
    wait(reason);
  }
}

void Simulation::begin_operation(std::string_view what, const char* file, int line,
                                 const MeetingCall& meeting) {
  Fiber& self = *current_;
  self.activity_ = {.what = what, .file = file, .line = line, .meeting = meeting};
  const std::uint64_t number = ++state_of(self.rank_).operations;
  state_of(self.rank_).progress_at = now_;
  record(EventKind::kActivity, self.rank_, -1, number, what);
  if (faults_ != nullptr) meet(self.rank_, faults_->on_operation(self.rank_, number));
}

void Simulation::hit(std::string_view probe) {
  const auto found = report_.probes.find(probe);
  if (found != report_.probes.end()) {
    ++found->second;
  } else {
    report_.probes.emplace(probe, 1);
  }
}

void Simulation::meet(int rank, RankFate fate) {
  switch (fate) {
    case RankFate::kLives: return;
    case RankFate::kCrashes: crash(rank); return;
    case RankFate::kHangs: hang(rank); return;
  }
}

void Simulation::on_crash(std::function<void(int)> observer) {
  crash_observers_.push_back(std::move(observer));
}

// A probe for each call that the rank has entered: "crash inside reduce_scatter".
void Simulation::note_where_it_struck(std::string_view what, int rank) {
  for (const auto& fiber : fibers_) {
    const bool waits = fiber->rank_ == rank && fiber->state_ == Fiber::State::kWaiting;
    if (!waits || fiber->reason_->kind != WaitKind::kCall) continue;
    const std::string_view call = fiber->activity_.what;
    if (!call.empty()) hit(std::string(what).append(call.substr(0, call.find(' '))));
  }
}

void Simulation::crash(int rank) {
  RankState& state = state_of(rank);
  touch(kEverything, Access::kWrite);
  if (state.crashed) return;
  state.crashed = true;
  state.died_at = now_;
  record(EventKind::kCrash, rank);
  note_where_it_struck(kCrashInside, rank);
  for (const auto& observer : crash_observers_) observer(rank);
  bool own = false;
  for (const auto& fiber : fibers_) {
    if (fiber->rank_ != rank) continue;
    fiber->killed_ = true;
    own = own || fiber.get() == current_;
    const bool asleep =
        fiber->state_ == Fiber::State::kWaiting || fiber->state_ == Fiber::State::kFrozen;
    if (asleep) make_ready(*fiber, Fiber::WakeUp::kKilled);
  }
  if (own) throw_if_killed(*current_, WaitKind::kCall);
}

void Simulation::hang(int rank) {
  RankState& state = state_of(rank);
  touch(kEverything, Access::kWrite);
  if (state.crashed || state.hung) return;
  state.hung = true;
  state.died_at = now_;
  record(EventKind::kHang, rank);
  note_where_it_struck(kHangInside, rank);
  for (const auto& fiber : fibers_) fiber->hung_ = fiber->hung_ || fiber->rank_ == rank;
  if (current_ != nullptr && current_->rank_ == rank) sleep(0);
}

}  // namespace ddproof::sim
