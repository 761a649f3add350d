// How a simulated rank ends against its will, whatever it was doing: every combination of what two
// of its tasks have entered and do last, with every way in which the rank can end. Where no
// exception may come out, a throw would end this program; so the run must end in another way.
#include <gtest/gtest.h>

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "backends/api/serial_queue.h"
#include "backends/local/local_process_group.h"
#include "backends/sim/sim_files.h"
#include "backends/sim/sim_runtime.h"
#include "tests/support/leaks.h"

namespace ddproof {
namespace {

// What a task has entered when its end comes.
enum class Scope {
  kNone,
  kLock,              // holds monitor A
  kCatchAll,          // swallows every exception, and waits in the handler
  kSleepOnUnwinding,  // a destructor that waits a while
  kBlockOnUnwinding,  // a destructor that waits for ever
  kTaskOnUnwinding,   // a destructor that starts a task, which locks A, and joins it
  kJoin,              // a destructor that joins the rank's other task (only in the main)
};
constexpr std::array kScopes = {Scope::kNone,
                                Scope::kLock,
                                Scope::kCatchAll,
                                Scope::kSleepOnUnwinding,
                                Scope::kBlockOnUnwinding,
                                Scope::kTaskOnUnwinding,
                                Scope::kJoin};

// What it does then.
enum class Act { kReturn, kThrow, kSleep, kBlock, kIdle, kLockA, kLockB, kCrash };
constexpr std::array kActs = {Act::kReturn, Act::kThrow, Act::kSleep, Act::kBlock,
                              Act::kIdle,   Act::kLockA, Act::kLockB, Act::kCrash};
enum class Poll { kClock, kLock, kWork };
constexpr std::array kPolls = {Poll::kClock, Poll::kLock, Poll::kWork};

enum class Fate { kLives, kCrashes, kHangs };
constexpr std::array kFates = {Fate::kLives, Fate::kCrashes, Fate::kHangs};

struct OwnError : std::runtime_error {
  using runtime_error::runtime_error;
};

// Rank 0 with its main and one task; rank 1 decides its fate.
class Rank {
 public:
  using Body = std::function<void(Rank&)>;

  explicit Rank(sim::StackPool& stacks)
      : simulation_({.ranks = 2, .event_count_max = 300, .stacks = &stacks}) {}

  sim::Report run(const Body& main, const Body& task, Fate fate) {
    simulation_.spawn(0, "main", [&] {
      const Begun begun(unended_mains_);
      const auto other = runtime_.spawn("task", [&] {
        const Begun task_begun(unended_tasks_);
        task(*this);
      });
      task_ = other.get();
      const Join join{*this};
      main(*this);
    });
    simulation_.spawn(1, "main", [this, fate] {
      simulation_.sleep(5);
      if (fate == Fate::kCrashes) simulation_.crash(0);
      if (fate == Fate::kHangs) simulation_.hang(0);
    });
    return simulation_.run();
  }

  void enter(Scope scope, const Body& then) {
    switch (scope) {
      case Scope::kNone: return then(*this);
      case Scope::kLock: {
        const MonitorLock lock(*a_);
        runtime_.sleep_for(Duration(2));
        return then(*this);
      }
      case Scope::kCatchAll: try { return then(*this);
        } catch (...) {
          return runtime_.sleep_for(Duration(3));
        }
      case Scope::kSleepOnUnwinding: {
        const OnUnwinding clean{[this] { runtime_.sleep_for(Duration(7)); }};
        return then(*this);
      }
      case Scope::kBlockOnUnwinding: {
        const OnUnwinding clean{[this] { block(false); }};
        return then(*this);
      }
      case Scope::kTaskOnUnwinding: {
        const OnUnwinding clean{[this] { run_last_task(); }};
        return then(*this);
      }
      case Scope::kJoin: {
        const Join join{*this};
        return then(*this);
      }
    }
  }

  void act(Act act) {
    switch (act) {
      case Act::kReturn: return;
      case Act::kThrow: throw OwnError("its own");
      case Act::kSleep: return runtime_.sleep_for(Duration(10));
      case Act::kBlock: return block(false);
      case Act::kIdle: return block(true);
      case Act::kLockA: return lock(*a_);
      case Act::kLockB: {
        const MonitorLock outer(*b_);
        runtime_.sleep_for(Duration(2));
        return lock(*a_);
      }
      case Act::kCrash: return simulation_.crash(0);
    }
  }

  // For ever, or until the Work says that it is done.
  void poll(Poll poll) {
    if (poll == Poll::kWork) {
      const LocalProcessGroup group;
      SerialQueue queue(runtime_, "calls", group,
                        [this](const Call&) { runtime_.sleep_for(kForever); });
      const WorkPtr work = queue.submit(Call{});
      while (!work->is_completed()) {
      }
    }
    while (poll == Poll::kClock) runtime_.now();
    const MonitorLock lock(*b_);
    while (poll == Poll::kLock) {  // a lock() that threw would leave b_ to be unlocked twice
      b_->unlock();
      b_->lock();
    }
  }

  bool main_is_unended() const { return unended_mains_ > 0; }
  std::uint64_t unended() const { return unended_mains_ + unended_tasks_; }

 private:
  // Counts a body that has begun and has neither returned nor unwound.
  struct Begun {
    std::uint64_t& count;
    explicit Begun(std::uint64_t& c) : count(c) { ++count; }
    ~Begun() { --count; }
  };

  struct Join {
    Rank& rank;
    ~Join() {
      try {
        rank.task_->join();
      } catch (const OwnError&) {
      } catch (const CommError&) {
      }
    }
  };

  struct OnUnwinding {
    std::function<void()> clean;
    ~OnUnwinding() {
      if (std::uncaught_exceptions() > 0) clean();
    }
  };

  void block(bool idle) {
    MonitorLock lock(*never_);
    while (true) never_->wait(kForever, {"nothing", {}, {}, idle});
  }

  void lock(Monitor& monitor) {
    const MonitorLock lock(monitor);
    runtime_.sleep_for(Duration(1));
  }

  void run_last_task() {
    const auto last = runtime_.spawn("last", [this] {
      const Begun begun(unended_tasks_);
      const MonitorLock lock(*a_);
    });
    last->join();
  }

  sim::Simulation simulation_;
  sim::Disk disk_;
  SimFileSystem files_{simulation_, disk_};
  SimRuntime runtime_{simulation_, 0, files_, {}};
  std::unique_ptr<Monitor> a_ = runtime_.make_monitor();
  std::unique_ptr<Monitor> b_ = runtime_.make_monitor();
  std::unique_ptr<Monitor> never_ = runtime_.make_monitor();
  Task* task_ = nullptr;  // on the main's stack
  std::uint64_t unended_mains_ = 0;
  std::uint64_t unended_tasks_ = 0;
};

bool is_deadlock(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const sim::DeadlockError&) {
    return true;
  } catch (...) {
  }
  return false;
}

// What must hold however the rank ended.
void expect_told(const sim::Report& report, const Rank& rank) {
  const sim::RankReport& told = report.ranks[0];
  EXPECT_EQ(report.abandoned, rank.unended());
  EXPECT_EQ(report.ranks[1].outcome, sim::RankOutcome::kReturned);
  EXPECT_EQ(told.outcome == sim::RankOutcome::kThrew,
            told.error != nullptr && told.outcome < sim::RankOutcome::kCrashed);
  EXPECT_FALSE(report.verdict == sim::Verdict::kNone && is_deadlock(told.error));
  if (!rank.main_is_unended()) return;
  EXPECT_NE(told.outcome, sim::RankOutcome::kReturned);
  EXPECT_EQ(told.outcome == sim::RankOutcome::kThrew, is_deadlock(told.error));
}

std::string text_of(std::initializer_list<int> numbers) {
  std::string text;
  for (const int number : numbers) text += std::to_string(number) + " ";
  return text;
}

// The tasks' scopes: two of the main, one of the other task.
void for_all_scopes(const std::function<void(Scope, Scope, Scope)>& check) {
  for (const Scope outer : kScopes) {
    for (const Scope inner : kScopes) {
      for (const Scope task : kScopes) {
        if (task != Scope::kJoin) check(outer, inner, task);
      }
    }
  }
}

TEST(SimUnwinding, EveryEndOfARankEndsTheRun) {
  sim::StackPool stacks;
  const LeaksAllowed leaks;  // abandoned tasks keep what they own
  std::uint64_t abandoned = 0, runs = 0;
  for_all_scopes([&](Scope outer, Scope inner, Scope scope) {
    for (const Act last : kActs) {
      for (const Act task_last : kActs) {
        for (const Fate fate : kFates) {
          Rank rank(stacks);
          const sim::Report report = rank.run(
              [&](Rank& r) {
                r.enter(outer, [&](Rank&) { r.enter(inner, [&](Rank&) { r.act(last); }); });
              },
              [&](Rank& r) { r.enter(scope, [&](Rank&) { r.act(task_last); }); }, fate);
          expect_told(report, rank);
          EXPECT_NE(report.verdict, sim::Verdict::kEventLimit);
          ASSERT_FALSE(testing::Test::HasFailure())
              << text_of({int(outer), int(inner), int(scope), int(last), int(task_last), int(fate)})
              << report.verdict_text;
          abandoned += report.abandoned > 0 ? 1 : 0;
          ++runs;
        }
      }
    }
  });
  // The interesting ends are no rare ones.
  EXPECT_GT(abandoned, runs / 10);
  EXPECT_LT(abandoned, runs / 2);
}

TEST(SimUnwinding, EveryEndOfARankThatPollsEndsTheRun) {
  sim::StackPool stacks;
  const LeaksAllowed leaks;
  for (const Scope scope : kScopes) {
    for (const Poll poll : kPolls) {
      for (const Act task_last : kActs) {
        for (const Fate fate : kFates) {
          Rank rank(stacks);
          const sim::Report report =
              rank.run([&](Rank& r) { r.enter(scope, [&](Rank&) { r.poll(poll); }); },
                       [&](Rank& r) { r.act(task_last); }, fate);
          expect_told(report, rank);
          ASSERT_FALSE(testing::Test::HasFailure())
              << text_of({int(scope), int(poll), int(task_last), int(fate)}) << report.verdict_text;
        }
      }
    }
  }
}

// A queue and its jobs hold each other; the one that its task never came to must go too.
TEST(SimUnwinding, AQueueWhoseTaskWasKilledLeavesNoJobBehind) {
  sim::Simulation simulation({.ranks = 2});
  sim::Disk disk;
  SimFileSystem files(simulation, disk);
  SimRuntime runtime(simulation, 0, files, {});
  std::weak_ptr<Work> waiting;
  simulation.spawn(0, "main", [&] {
    const LocalProcessGroup group;
    SerialQueue queue(runtime, "calls", group, [&](const Call&) { runtime.sleep_for(kForever); });
    queue.submit(Call{});
    waiting = queue.submit(Call{});
    runtime.sleep_for(kForever);
  });
  simulation.spawn(1, "main", [&] {
    simulation.sleep(5);
    EXPECT_FALSE(waiting.expired());
    simulation.crash(0);
  });
  simulation.run();
  EXPECT_TRUE(waiting.expired());
}

}  // namespace
}  // namespace ddproof
