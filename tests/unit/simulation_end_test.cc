// How ranks end against their will: deadlock, crash, hang.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulator/simulation.h"
#include "simulator/wait_list.h"

namespace ddproof::sim {
namespace {

// Sets a flag when the stack unwinds past it.
struct Guard {
  bool& flag;
  ~Guard() { flag = true; }
};

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(Deadlock, SaysWhoWaitsWhereAndForWhom) {
  Simulation simulation({.ranks = 4});
  WaitList never;
  for (int rank = 0; rank < 4; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      simulation.sleep(3'000);
      if (rank == 3) return;
      const std::vector<int> ranks =
          rank == 1 ? std::vector<int>{3} : std::vector<int>{rank == 0 ? 2 : 1, 1, 1};
      never.wait(simulation, {.what = "barrier #2", .file = "a/x.cc", .line = 12, .ranks = &ranks});
    });
  }
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(report.verdict_text,
            "deadlock at t=3 us: rank 1 waits in barrier #2 at x.cc:12 for rank 3; "
            "behind it rank 0 waits in barrier #2 at x.cc:12 for ranks 1, 2; "
            "rank 2 waits in barrier #2 at x.cc:12 for rank 1; rank 3 has returned");
  EXPECT_EQ(report.verdict_culprits, std::vector<int>{3});
  EXPECT_EQ(what_of(report.ranks[0].error), report.verdict_text);
}

TEST(Deadlock, NamesNoCulpritInACircle) {
  Simulation simulation({.ranks = 2});
  WaitList never;
  for (int rank = 0; rank < 2; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      const std::vector<int> other{1 - rank};
      never.wait(simulation, {.what = "send", .ranks = &other});
    });
  }
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict_text,
            "deadlock at t=0 ns: rank 0 waits in send for rank 1; rank 1 waits in send for rank 0");
  EXPECT_TRUE(report.verdict_culprits.empty());
}

// The verdict when each rank waits, for ever, as its reason says.
Report deadlock_of(const std::vector<WaitReason>& reasons) {
  Simulation simulation({.ranks = static_cast<int>(reasons.size())});
  WaitList never;
  for (std::size_t rank = 0; rank < reasons.size(); ++rank) {
    if (reasons[rank].what.empty()) continue;  // it returns
    simulation.spawn(static_cast<int>(rank), "main",
                     [&, rank] { never.wait(simulation, reasons[rank]); });
  }
  return simulation.run();
}

TEST(Deadlock, TellsEachCircleAndThenWhoWaitsBehind) {
  const std::vector<int> zero{0}, one{1}, two{2}, three{3};
  const Report report = deadlock_of({{.what = "recv", .ranks = &one},
                                     {.what = "recv", .ranks = &zero},
                                     {.what = "send", .ranks = &three},
                                     {.what = "send", .ranks = &two},
                                     {.what = "barrier", .ranks = &three}});
  EXPECT_EQ(report.verdict_text,
            "deadlock at t=0 ns: rank 0 waits in recv for rank 1; rank 1 waits in recv for rank 0; "
            "besides rank 2 waits in send for rank 3; rank 3 waits in send for rank 2; "
            "behind them rank 4 waits in barrier for rank 3");
  EXPECT_EQ(report.verdict_cores, (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
}

TEST(Deadlock, BlamesNobodyWhoHasEndedWhileAnotherWouldDo) {
  const std::vector<int> zero{0}, others{1, 2}, ended{2, 3};
  const Report stuck = deadlock_of(
      {{.what = "recv", .ranks = &others, .any = true}, {.what = "send", .ranks = &zero}, {}});
  EXPECT_EQ(stuck.verdict_text,
            "deadlock at t=0 ns: rank 0 waits in recv for any of ranks 1, 2; "
            "rank 1 waits in send for rank 0");
  const Report alone = deadlock_of({{.what = "recv", .ranks = &ended, .any = true}, {}, {}, {}});
  EXPECT_EQ(alone.verdict_text,
            "deadlock at t=0 ns: rank 0 waits in recv for any of ranks 2, 3; rank 2 has returned; "
            "rank 3 has returned");
  EXPECT_EQ(alone.verdict_culprits, (std::vector<int>{2, 3}));
}

TEST(Deadlock, BlamesWhoIsNotWhereMostAre) {
  const std::vector<int> zero{0}, two{2};
  const MeetingCall meeting{3, "barrier"};
  const Report report = deadlock_of({{.what = "barrier", .ranks = &two, .meeting = meeting},
                                     {.what = "barrier", .ranks = &two, .meeting = meeting},
                                     {.what = "recv", .ranks = &zero}});
  EXPECT_EQ(report.verdict_text,
            "deadlock at t=0 ns: rank 0 waits in barrier for rank 2; rank 2 waits in recv for rank "
            "0; behind them rank 1 waits in barrier for rank 2; rank 2 called something else");
  EXPECT_EQ(report.verdict_culprits, std::vector<int>{2});
}

TEST(Deadlock, PrintsTheOperationThatTheFiberIsIn) {
  Simulation simulation({});
  WaitList never;
  simulation.spawn(0, "main", [&] {
    simulation.begin_operation("all_reduce #7", "y.cc", 5);
    never.wait(simulation, {.what = "recv"});
  });
  EXPECT_EQ(simulation.run().verdict_text,
            "deadlock at t=0 ns: rank 0 waits in all_reduce #7 at y.cc:5");
}

TEST(Deadlock, UnwindsEveryWaitingFiber) {
  Simulation simulation({.ranks = 2});
  WaitList never;
  bool unwound[2] = {};
  for (int rank = 0; rank < 2; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      const Guard guard{unwound[rank]};
      never.wait(simulation, {.what = "nothing"});
    });
  }
  const Report report = simulation.run();
  EXPECT_TRUE(unwound[0] && unwound[1]);
  EXPECT_EQ(report.abandoned, 0u);
}

TEST(Deadlock, LetsARankGoOnThatHandlesIt) {
  Simulation simulation({.ranks = 2});
  WaitList list;
  bool handled = false;
  simulation.spawn(0, "main", [&] {
    try {
      list.wait(simulation, {.what = "first"});
    } catch (const DeadlockError&) {
      simulation.sleep(10);
      handled = true;
    }
  });
  EXPECT_EQ(simulation.run().ranks[0].outcome, RankOutcome::kReturned);
  EXPECT_TRUE(handled);
}

TEST(Deadlock, NeverThrowsOutOfAJoinAndReportsTheRank) {
  Simulation simulation({.ranks = 2});
  WaitList never;
  // Here, and the bodies small enough for no memory of their own: what abandoned fibers own leaks.
  std::array<std::shared_ptr<Fiber>, 2> tasks;
  const auto main = [&](int rank) {
    auto& task = tasks[static_cast<std::size_t>(rank)];
    task = simulation.spawn(rank, "task", [&simulation, &never] {
      while (true) never.wait(simulation, {.what = "lock", .kind = WaitKind::kCleanup});
    });
    try {
      simulation.join(*task);
    } catch (...) {
      ADD_FAILURE() << "a join threw";
    }
  };
  for (int rank = 0; rank < 2; ++rank) {
    simulation.spawn(rank, "main", [&main, rank] { main(rank); });
  }
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict_text, "deadlock at t=0 ns: rank 0 waits in join; rank 1 waits in join");
  EXPECT_EQ(report.abandoned, 4u);
  for (const RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.outcome, RankOutcome::kThrew);
    EXPECT_EQ(what_of(rank.error), report.verdict_text);
  }
}

TEST(Deadlock, IsReportedOfARankThatOnlyTheEndOfTheRunFreed) {
  Simulation simulation({});
  WaitList work, lock;
  simulation.spawn(0, "main", [&] {
    simulation.spawn(0, "service", [&] {
      struct Unlock {
        Simulation& simulation;
        WaitList& lock;
        ~Unlock() { lock.wake_all(simulation); }
      } unlock{simulation, lock};
      work.wait(simulation, {.what = "work", .kind = WaitKind::kIdle});
    });
    lock.wait(simulation, {.what = "lock", .kind = WaitKind::kCleanup});
    lock.wait(simulation, {.what = "lock", .kind = WaitKind::kCleanup});
  });
  const Report report = simulation.run();
  EXPECT_EQ(report.abandoned, 0u);
  EXPECT_EQ(report.verdict_text, "deadlock at t=0 ns: rank 0 waits in lock");
  EXPECT_EQ(what_of(report.ranks[0].error), report.verdict_text);
}

TEST(Deadlock, ReportsWhatAMainThrewRatherThanTheVerdict) {
  Simulation simulation({});
  WaitList never;
  simulation.spawn(0, "main", [&] {
    simulation.spawn(0, "task", [&] {
      while (true) never.wait(simulation, {.what = "lock", .kind = WaitKind::kCleanup});
    });
    throw std::runtime_error("its own");
  });
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(what_of(report.ranks[0].error), "its own");
}

TEST(Deadlock, DoesNotCountIdleServices) {
  Simulation simulation({});
  WaitList work;
  bool unwound = false;
  simulation.spawn(0, "main", [&] {
    simulation.spawn(0, "service", [&] {
      const Guard guard{unwound};
      work.wait(simulation, {.what = "work", .kind = WaitKind::kIdle});
    });
  });
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict, Verdict::kNone);
  EXPECT_TRUE(unwound);
}

TEST(Deadlock, ComesAtOnceWhenOnlyPatienceIsLeft) {
  Simulation simulation({});
  WaitList never;
  simulation.spawn(0, "main", [&] {
    never.wait(simulation, {.what = "recv"}, {.at = 1'800'000'000'000, .is_patience = true});
  });
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(report.virtual_time, 0);
}

TEST(Deadlock, LetsPatienceRunOutWhileAnythingElseCanHappen) {
  for (const bool patience_runs_out : {false, true}) {
    Simulation simulation({.ranks = 2, .patience_runs_out = patience_runs_out});
    WaitList never;
    bool timed_out = false;
    simulation.spawn(0, "main", [&] {
      timed_out = !never.wait(simulation, {.what = "recv"}, {.at = 1'800, .is_patience = true});
    });
    if (!patience_runs_out) simulation.spawn(1, "main", [&] { simulation.sleep(1'801); });
    EXPECT_EQ(simulation.run().verdict, Verdict::kNone);
    EXPECT_TRUE(timed_out);
  }
}

TEST(Deadlock, NamesAtMostEightRanks) {
  Simulation simulation({.ranks = 100});
  WaitList never;
  for (int rank = 0; rank < 99; ++rank) {
    simulation.spawn(rank, "main", [&] {
      const std::vector<int> last{99};
      never.wait(simulation, {.what = "barrier", .ranks = &last});
    });
  }
  const std::string text = simulation.run().verdict_text;
  EXPECT_NE(text.find("rank 7 waits in barrier for rank 99; 91 more wait; rank 99 has returned"),
            std::string::npos);
}

TEST(Crash, UnwindsTheRankAndTellsObserversFirst) {
  Simulation simulation({.ranks = 2});
  std::string log;
  simulation.on_crash([&](int rank) { log += "crash " + std::to_string(rank); });
  bool unwound = false;
  simulation.spawn(0, "main", [&] {
    const Guard guard{unwound};
    simulation.sleep(100);
    FAIL() << "a dead rank ran on";
  });
  simulation.spawn(1, "main", [&] {
    simulation.sleep(10);
    simulation.crash(0);
    EXPECT_FALSE(unwound);
    EXPECT_FALSE(simulation.is_alive(0));
  });
  const Report report = simulation.run();
  EXPECT_EQ(log, "crash 0");
  EXPECT_TRUE(unwound);
  EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kCrashed);
  EXPECT_EQ(report.ranks[1].outcome, RankOutcome::kReturned);
  EXPECT_EQ(report.virtual_time, 10);
}

TEST(Crash, OfTheRunningRankThrowsAtOnce) {
  Simulation simulation({});
  simulation.spawn(0, "main", [&] {
    simulation.crash(0);
    FAIL() << "a dead rank ran on";
  });
  EXPECT_EQ(simulation.run().ranks[0].outcome, RankOutcome::kCrashed);
}

TEST(Crash, EndsTheTasksOfTheRankAndTheJoinThatADestructorMakes) {
  Simulation simulation({});
  bool joined = false;
  simulation.spawn(0, "main", [&] {
    const auto task = simulation.spawn(0, "task", [&] { simulation.sleep(kNever); });
    struct Joiner {
      Simulation& simulation;
      Fiber& fiber;
      bool& joined;
      ~Joiner() {
        simulation.join(fiber);
        joined = true;
      }
    } joiner{simulation, *task, joined};
    simulation.sleep(5);
    simulation.crash(0);
  });
  simulation.run();
  EXPECT_TRUE(joined);
}

TEST(Crash, EndsAFiberThatPolls) {
  for (const WaitKind kind : {WaitKind::kCall, WaitKind::kCleanup}) {
    Simulation simulation({.ranks = 2});
    simulation.spawn(0, "main", [&] {
      while (true) simulation.note_poll(kind);
    });
    simulation.spawn(1, "main", [&] {
      simulation.sleep(10'000);
      simulation.crash(0);
    });
    const Report report = simulation.run();
    EXPECT_EQ(report.verdict, Verdict::kNone);
    EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kCrashed);
    EXPECT_EQ(report.abandoned, kind == WaitKind::kCall ? 0u : 1u);
  }
}

TEST(Crash, CanBeOrderedByTheFaultHook) {
  struct Hook : FaultHook {
    RankFate on_operation(int rank, std::uint64_t number) override {
      return rank == 1 && number == 2 ? RankFate::kCrashes : RankFate::kLives;
    }
  } hook;
  Simulation simulation({.ranks = 2, .faults = &hook});
  std::vector<int> begun(2);
  for (int rank = 0; rank < 2; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      for (int i = 0; i < 3; ++i) {
        simulation.begin_operation("step", "", 0);
        ++begun[rank];
      }
    });
  }
  simulation.run();
  EXPECT_EQ(begun, (std::vector<int>{3, 1}));
}

TEST(Hang, SilencesTheRankUntilTheEnd) {
  Simulation simulation({.ranks = 2});
  WaitList list;
  bool unwound = false, went_on = false;
  simulation.spawn(0, "main", [&] {
    const Guard guard{unwound};
    simulation.sleep(10);
    went_on = true;
    list.wake_all(simulation);
  });
  simulation.spawn(1, "main", [&] {
    simulation.hang(0);
    const std::vector<int> zero{0};
    list.wait(simulation, {.what = "recv", .ranks = &zero});
  });
  const Report report = simulation.run();
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(unwound);
  EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kHung);
  EXPECT_EQ(report.verdict_text,
            "deadlock at t=0 ns: rank 1 waits in recv for rank 0; rank 0 hangs since 0 ns");
}

}  // namespace
}  // namespace ddproof::sim
