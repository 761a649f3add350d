// Deadlocks of some ranks while others go on: the verdict comes then, and only when it is true.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "simulator/simulation.h"
#include "simulator/wait_list.h"

namespace ddproof::sim {
namespace {

constexpr Time kOneSecond = 1'000'000'000;

// Ranks 0 and 1 wait for each other, as `reason` says, while rank 2 does `what_goes_on`.
class Circle {
 public:
  explicit Circle(const SimulationOptions& options = {.ranks = 3, .event_count_max = 100'000})
      : simulation(options) {}

  Report run(const std::function<void()>& what_goes_on) {
    for (int rank = 0; rank < 2; ++rank) {
      simulation.spawn(rank, "main", [this, rank] {
        const std::vector<int> other{1 - rank};
        WaitReason reason = reason_of(rank);
        reason.what = "recv";
        if (reason.ranks == nullptr) reason.ranks = &other;
        while (!is_free) {
          waiters.wait(simulation, reason, {simulation.now() + 1'800 * kOneSecond, true});
        }
      });
    }
    simulation.spawn(2, "main", what_goes_on);
    return simulation.run();
  }

  void free_all(std::uint64_t = 0) {
    is_free = true;
    waiters.wake_all(simulation);
  }

  Simulation simulation;
  WaitList waiters;
  bool is_free = false;
  std::function<WaitReason(int rank)> reason_of = [](int) { return WaitReason{}; };
};

void expect_verdict(const Report& report, const std::string& time) {
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(report.verdict_text, "deadlock at t=" + time +
                                     ": rank 0 waits in recv for rank 1; "
                                     "rank 1 waits in recv for rank 0");
  EXPECT_EQ(report.verdict_cores, (std::vector<std::vector<int>>{{0, 1}}));
  EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kThrew);
  EXPECT_EQ(report.ranks[1].outcome, RankOutcome::kThrew);
  EXPECT_EQ(report.ranks[2].outcome, RankOutcome::kStopped);
  EXPECT_EQ(report.abandoned, 0u);
}

TEST(PartialDeadlock, IsToldBeforeALongSleep) {
  Circle circle;
  const Report report = circle.run([&] {
    circle.simulation.sleep(5);
    circle.simulation.sleep(3'600 * kOneSecond);
  });
  expect_verdict(report, "0 ns");
}

TEST(PartialDeadlock, IsToldLateInARunBeforeASleepOfModestLength) {
  Circle circle;
  circle.reason_of = [&](int) {
    for (int i = 0; i < 2'000; ++i) circle.simulation.sleep(kOneSecond);
    return WaitReason{};
  };
  const Report report = circle.run([&] { circle.simulation.sleep(3'600 * kOneSecond); });
  expect_verdict(report, "2000 s");
}

TEST(PartialDeadlock, IsToldWhileAnotherRankGoesOnForEver) {
  Circle circle;
  const Report report = circle.run([&] {
    circle.simulation.sleep(5);
    while (true) circle.simulation.sleep(1);
  });
  EXPECT_LT(report.virtual_time, 10);
  expect_verdict(report, "0 ns");
}

TEST(PartialDeadlock, IsToldWhileNoTimePasses) {
  Circle circle;
  const Report report = circle.run([&] {
    while (true) circle.simulation.sleep(0);
  });
  EXPECT_LT(report.events, 5'000u);
  expect_verdict(report, "0 ns");
}

TEST(PartialDeadlock, IsToldWhileAnotherRankPolls) {
  Circle circle;
  const Report report = circle.run([&] {
    while (true) circle.simulation.note_poll(WaitKind::kCall);
  });
  expect_verdict(report, "0 ns");
}

// The third rank lets time pass, then ends the waits of the others.
void expect_none_until_freed(Circle& circle) {
  const Report report = circle.run([&] {
    circle.simulation.sleep(3'600);
    circle.free_all();
  });
  EXPECT_EQ(report.verdict, Verdict::kNone) << report.verdict_text;
}

TEST(PartialDeadlock, IsNoneForARankThatWaitsForOneThatGoesOn) {
  Circle circle;
  const std::vector<int> both{0, 2};
  circle.reason_of = [&](int rank) { return WaitReason{.ranks = rank == 1 ? &both : nullptr}; };
  expect_none_until_freed(circle);
}

TEST(PartialDeadlock, IsNoneWhereOneThatGoesOnMightLeave) {
  Circle circle;
  const std::vector<int> third{2};
  circle.reason_of = [&](int rank) {
    return WaitReason{.may_leave = rank == 0 ? &third : nullptr};
  };
  expect_none_until_freed(circle);
}

TEST(PartialDeadlock, IsNoneForARankWithAFiberThatGoesOn) {
  Circle circle;
  circle.simulation.spawn(1, "main", [&] {
    for (int i = 0; i < 5'000; ++i) circle.simulation.sleep(1);
    circle.free_all();
  });
  EXPECT_EQ(circle.run([] {}).verdict, Verdict::kNone);
}

TEST(PartialDeadlock, IsNoneForARankThatDoesNotSayForWhomItWaits) {
  Circle circle;
  const std::vector<int> nobody;
  circle.reason_of = [&](int) { return WaitReason{.ranks = &nobody}; };
  const Report report = circle.run([&] {
    for (int i = 0; i < 5'000; ++i) circle.simulation.sleep(1);
    circle.free_all();
  });
  EXPECT_EQ(report.verdict, Verdict::kNone) << report.verdict_text;
}

TEST(PartialDeadlock, HasThoseWhoWaitForTheirOwnFibers) {
  Circle circle;
  for (int rank = 0; rank < 2; ++rank) {
    circle.simulation.spawn(rank, "main", [&circle] {
      circle.waiters.wait(circle.simulation, {.what = "queue", .is_local = true});
    });
  }
  const Report report = circle.run([&] {
    while (true) circle.simulation.sleep(1);
  });
  EXPECT_EQ(report.verdict, Verdict::kDeadlock);
  EXPECT_EQ(report.verdict_cores, (std::vector<std::vector<int>>{{0, 1}}));
}

TEST(PartialDeadlock, BlamesARankThatHasEndedAndIsServedBehindIt) {
  Circle circle({.ranks = 4, .event_count_max = 100'000});
  const std::vector<int> fourth{3};
  circle.reason_of = [&](int rank) { return WaitReason{.ranks = rank == 0 ? &fourth : nullptr}; };
  circle.simulation.spawn(3, "main", [] {});
  const Report report = circle.run([&] {
    while (true) circle.simulation.sleep(1);
  });
  EXPECT_EQ(report.verdict_text,
            "deadlock at t=0 ns: rank 0 waits in recv for rank 3; behind it rank 1 waits in recv "
            "for rank 0; rank 3 has returned");
  EXPECT_EQ(report.verdict_culprits, std::vector<int>{3});
}

TEST(PartialDeadlock, WaitsForEventsUnlessTheyConcernOthers) {
  // Concerned: nobody says whom; ranks 0 and 1; rank 2.
  for (const int concerned : {-1, 0, 2}) {
    Circle circle;
    if (concerned >= 0) {
      circle.simulation.explain_events(
          &circle, [concerned](std::uint64_t, RankMarks& ranks) { ranks.add(concerned); });
    }
    circle.simulation.schedule(4'000, action_of<&Circle::free_all>(circle));
    const Report report = circle.run([&] {
      for (int i = 0; i < 5'000; ++i) circle.simulation.sleep(1);
    });
    EXPECT_EQ(report.verdict, concerned == 2 ? Verdict::kDeadlock : Verdict::kNone) << concerned;
  }
}

TEST(PartialDeadlock, WaitsForWhatIsLeftForTheEndOfTime) {
  Circle circle;
  circle.simulation.at_end_of_time(action_of<&Circle::free_all>(circle));
  const Report report = circle.run([&] {
    for (int i = 0; i < 5'000; ++i) circle.simulation.sleep(0);
  });
  EXPECT_EQ(report.verdict, Verdict::kNone) << report.verdict_text;
}

TEST(PartialDeadlock, IsToldBesideWorkThatIsLeftForEveryEndOfTime) {
  Circle circle;
  const Report report = circle.run([&] {
    while (true) {
      circle.simulation.at_end_of_time({[](void*, std::uint64_t) {}, nullptr, 0});
      circle.simulation.sleep(1);
    }
  });
  expect_verdict(report, std::to_string(report.virtual_time) + " ns");
}

TEST(PartialDeadlock, IsNoMatterWherePatienceRunsOut) {
  Circle circle({.ranks = 3, .event_count_max = 100'000, .patience_runs_out = true});
  circle.simulation.schedule(4'000 * kOneSecond, action_of<&Circle::free_all>(circle));
  const Report report = circle.run([&] { circle.simulation.sleep(3'600 * kOneSecond); });
  EXPECT_EQ(report.verdict, Verdict::kNone) << report.verdict_text;
}

}  // namespace
}  // namespace ddproof::sim
