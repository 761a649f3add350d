// Progress once the faults are over: what is asked for, what the verdict says, what is healed.
#include "simulator/liveness.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/network.h"
#include "simulator/plan_faults.h"
#include "simulator/simulation.h"
#include "simulator/wait_list.h"

namespace ddproof::sim {
namespace {

constexpr Time kSecond = 1'000'000'000;
const Liveness kAll{.faults_stop = kSecond, .within = kSecond, .core = {0, 1}};

// Two ranks, of whom 1 waits for a message that 0 sends `sends` times, a quarter of a second apart.
Report run_messages(const std::string& faults, const Liveness* liveness, int sends) {
  PlanFaults plan(parse_fault_plan(faults));
  Simulation simulation({.ranks = 2, .faults = &plan, .liveness = liveness});
  plan.watch(simulation);
  Network network(simulation, {});
  struct Inbox {
    Simulation& simulation;
    WaitList list{};
    bool has = false;
    void arrive(std::uint64_t) {
      has = true;
      list.wake_all(simulation);
    }
  } inbox{simulation};
  Flow flow;
  simulation.spawn(0, "main", [&] {
    for (int i = 0; i < sends; ++i) {
      simulation.begin_operation("send", "x.cc", 1);
      network.send(0, 1, 8, flow, action_of<&Inbox::arrive>(inbox));
      simulation.sleep(kSecond / 4);
    }
  });
  simulation.spawn(1, "main", [&] {
    simulation.sleep(10);
    simulation.begin_operation("recv", "x.cc", 2);
    const std::vector<int> zero{0};
    while (!inbox.has) inbox.list.wait(simulation, {.what = "message", .ranks = &zero});
  });
  return simulation.run();
}

constexpr const char* kForGood = "partition ranks=0 start=0ns end=never";

TEST(Liveness, HoldsWhenSomebodySendsAgainAfterTheFaults) {
  const Report report = run_messages(kForGood, &kAll, 10);
  EXPECT_EQ(report.verdict, Verdict::kNone);
  EXPECT_EQ(report.virtual_time, 10 * kSecond / 4);
}

TEST(Liveness, MissesAMessageThatAPartitionSwallowedAndNobodySendsAgain) {
  const Report report = run_messages(kForGood, &kAll, 2);
  EXPECT_EQ(report.verdict, Verdict::kLiveness);
  EXPECT_EQ(report.verdict_text,
            "no progress is possible at t=1 s, after the faults stopped at 1 s: rank 1 waits in "
            "recv at x.cc:2 for rank 0 since 10 ns");
  EXPECT_EQ(report.verdict_culprits, std::vector<int>{1});
  EXPECT_EQ(report.ranks[1].outcome, RankOutcome::kThrew);
  EXPECT_EQ(run_messages(kForGood, nullptr, 2).verdict, Verdict::kDeadlock);
}

TEST(Liveness, WaitsNoLongerThanTheBoundForARankThatLeavesOthersRunning) {
  Simulation simulation({.ranks = 2, .liveness = &kAll});
  WaitList never;
  simulation.spawn(0, "main", [&] {
    for (int i = 0; i < 100; ++i) {
      simulation.begin_operation("step", "x.cc", 1);
      simulation.sleep(kSecond / 2);
    }
  });
  simulation.spawn(1, "main", [&] {
    simulation.begin_operation("recv", "x.cc", 2);
    never.wait(simulation, {.what = "message"});
  });
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict, Verdict::kLiveness);
  EXPECT_EQ(
      report.verdict_text,
      "no progress for 1 s at t=2 s, after the faults stopped at 1 s: rank 1 waits in recv at "
      "x.cc:2 since 0 ns");
  EXPECT_EQ(report.virtual_time, 2 * kSecond);
  EXPECT_EQ(report.abandoned, 0u);
}

// How the run of one rank ends that begins an operation every `pause`.
Verdict verdict_of_pauses(Time pause) {
  const Liveness liveness{.faults_stop = kSecond, .within = kSecond, .core = {0}};
  Simulation simulation({.liveness = &liveness});
  simulation.spawn(0, "main", [&] {
    for (int i = 0; i < 5; ++i) {
      simulation.begin_operation("step", "x.cc", 1);
      simulation.sleep(pause);
    }
  });
  return simulation.run().verdict;
}

TEST(Liveness, AllowsABoundToTheNanosecond) {
  EXPECT_EQ(verdict_of_pauses(kSecond), Verdict::kNone);
  EXPECT_EQ(verdict_of_pauses(kSecond + 1), Verdict::kLiveness);
}

TEST(Liveness, HealsTheRanksOfTheCoreThatHang) {
  for (const bool in_core : {true, false}) {
    const Liveness liveness{.faults_stop = kSecond,
                            .within = kSecond,
                            .core = in_core ? std::vector{0, 1} : std::vector{0}};
    Simulation simulation({.ranks = 2, .liveness = &liveness});
    WaitList list;
    bool has_come = false;
    simulation.spawn(0, "main", [&] {
      const std::vector<int> one{1};
      while (!has_come) list.wait(simulation, {.what = "message", .ranks = &one});
    });
    simulation.spawn(1, "main", [&] {
      simulation.sleep(5);
      simulation.hang(1);
      has_come = true;
      list.wake_all(simulation);
    });
    const Report report = simulation.run();
    EXPECT_EQ(report.verdict, in_core ? Verdict::kNone : Verdict::kLiveness);
    EXPECT_EQ(report.virtual_time, kSecond);
    EXPECT_EQ(report.ranks[1].outcome, in_core ? RankOutcome::kReturned : RankOutcome::kHung);
  }
}

// What each rank of a run does from the start.
enum class Does { kWaits, kComputes, kSteps, kReturns, kHangs };
struct Part {
  Does what;
  std::vector<int> awaited = {};
};

// `core` are the ranks that owe progress.
Report run_parts(const std::vector<Part>& parts, const std::vector<int>& core) {
  const Liveness liveness{.faults_stop = kSecond, .within = kSecond, .core = core};
  Simulation simulation({.ranks = static_cast<int>(parts.size()), .liveness = &liveness});
  WaitList never;
  for (int rank = 0; rank < static_cast<int>(parts.size()); ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      const Part& part = parts[static_cast<std::size_t>(rank)];
      switch (part.what) {
        case Does::kWaits: never.wait(simulation, {.what = "recv", .ranks = &part.awaited}); break;
        case Does::kComputes: simulation.sleep(100 * kSecond, "compute"); break;
        case Does::kSteps:
          for (int i = 0; i < 100; ++i) {
            simulation.begin_operation("step", "", 0);
            simulation.sleep(kSecond / 2);
          }
          break;
        case Does::kReturns: break;
        case Does::kHangs: simulation.hang(rank); break;
      }
    });
  }
  Report report = simulation.run();
  EXPECT_EQ(report.verdict, Verdict::kLiveness);
  return report;
}

TEST(Liveness, BlamesWhoIsStuckAndNotWhoWaitsForThem) {
  const Part waits_for_0{Does::kWaits, {0}}, waits_for_1{Does::kWaits, {1}};
  const Report slow = run_parts({{Does::kComputes}, waits_for_0, waits_for_1}, {0, 1, 2});
  EXPECT_EQ(slow.verdict_culprits, std::vector<int>{0});
  EXPECT_EQ(slow.verdict_text,
            "no progress for 1 s at t=2 s, after the faults stopped at 1 s: rank 0 waits in "
            "compute since 0 ns; behind it rank 1 waits in recv for rank 0 since 0 ns; rank 2 "
            "waits in recv for rank 1 since 0 ns");
  // Also where only the last one owes progress.
  EXPECT_EQ(run_parts({{Does::kComputes}, waits_for_0, waits_for_1}, {2}).verdict_culprits,
            std::vector<int>{0});
  const Report circle =
      run_parts({waits_for_1, waits_for_0, waits_for_0, {Does::kSteps}}, {0, 1, 2});
  EXPECT_EQ(circle.verdict_culprits, (std::vector<int>{0, 1}));
  EXPECT_NE(circle.verdict_text.find("behind them rank 2 waits"), std::string::npos);
}

TEST(Liveness, BlamesWhoHasEnded) {
  const Part waits_for_0{Does::kWaits, {0}}, waits_for_1{Does::kWaits, {1}};
  const Report hung = run_parts({{Does::kHangs}, waits_for_0, waits_for_1}, {1, 2});
  EXPECT_EQ(hung.verdict_culprits, std::vector<int>{0});
  EXPECT_TRUE(hung.verdict_text.ends_with("; rank 0 hangs since 0 ns")) << hung.verdict_text;
  const Report left = run_parts({{Does::kReturns}, waits_for_0, waits_for_1}, {0, 1, 2});
  EXPECT_EQ(left.verdict_culprits, std::vector<int>{0});
  EXPECT_TRUE(left.verdict_text.ends_with("; rank 0 has returned")) << left.verdict_text;
}

TEST(Liveness, BlamesWhoWaitsForARankThatMakesProgress) {
  const Report report =
      run_parts({{Does::kSteps}, {Does::kWaits, {0}}, {Does::kWaits, {1}}}, {0, 1, 2});
  EXPECT_EQ(report.verdict_culprits, std::vector<int>{1});
}

TEST(Liveness, AsksNothingOfTheDeadAndOfThoseOutsideTheCore) {
  const Liveness liveness{.faults_stop = kSecond, .within = kSecond, .core = {0, 1}};
  Simulation simulation({.ranks = 3, .liveness = &liveness});
  for (int rank = 0; rank < 3; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      if (rank == 0) return;
      if (rank == 1) simulation.crash(1);
      simulation.sleep(100 * kSecond);
    });
  }
  EXPECT_EQ(simulation.run().verdict, Verdict::kNone);
}

TEST(Liveness, NoFaultStrikesAfterTheyStop) {
  PlanFaults plan(parse_fault_plan("crash rank=0 operation=2; slow rank=0 factor=4 delay=0ns"));
  const Liveness liveness{.faults_stop = kSecond, .within = kSecond, .core = {0}};
  Simulation simulation({.faults = &plan, .liveness = &liveness});
  plan.watch(simulation);
  simulation.spawn(0, "main", [&] {
    simulation.begin_operation("step", "", 0);
    simulation.sleep(kSecond / 2);  // takes 2 s
    simulation.begin_operation("step", "", 0);
    simulation.sleep(kSecond / 2);
  });
  const Report report = simulation.run();
  EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kReturned);
  EXPECT_EQ(report.virtual_time, 5 * kSecond / 2);
}

}  // namespace
}  // namespace ddproof::sim
