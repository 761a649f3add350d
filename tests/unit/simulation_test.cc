// The simulator's core: order, time, choice, ends of runs.
#include "simulator/simulation.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "simulator/wait_list.h"

namespace ddproof::sim {
namespace {

// A program with choices: every rank sleeps random times of its own and logs its steps.
Report run_random_sleepers(std::uint64_t seed, Scheduler* scheduler, std::string* log = nullptr) {
  Simulation simulation({.ranks = 5, .seed = seed, .scheduler = scheduler});
  for (int rank = 0; rank < 5; ++rank) {
    simulation.spawn(rank, "main", [&simulation, rank, log] {
      for (int i = 0; i < 20; ++i) {
        simulation.sleep(static_cast<Time>(below(simulation.random_u64(rank), 4)));
        if (log != nullptr) *log += std::to_string(rank);
      }
    });
  }
  return simulation.run();
}

TEST(Simulation, RunsActionsInOrderOfTimeThenOfScheduling) {
  struct Log {
    void add(std::uint64_t value) { values.push_back(value); }
    std::vector<std::uint64_t> values;
  } log;
  Simulation simulation({});
  simulation.schedule(5, action_of<&Log::add>(log, 1));
  simulation.schedule(3, action_of<&Log::add>(log, 2));
  simulation.schedule(5, action_of<&Log::add>(log, 3));
  simulation.schedule(0, action_of<&Log::add>(log, 4));
  const Report report = simulation.run();
  EXPECT_EQ(log.values, (std::vector<std::uint64_t>{4, 2, 1, 3}));
  EXPECT_EQ(report.virtual_time, 5);
}

TEST(Simulation, TheEndOfATimeComesAfterAllThatHappensAtIt) {
  struct Log {
    void add(std::uint64_t value) {
      values.push_back(value);
      if (value == 9) simulation.schedule(simulation.now(), action_of<&Log::add>(*this, 10));
    }
    Simulation& simulation;
    std::vector<std::uint64_t> values;
  };
  Simulation simulation({.ranks = 2});
  Log log{simulation, {}};
  for (int rank = 0; rank < 2; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      if (rank == 0) simulation.at_end_of_time(action_of<&Log::add>(log, 9));
      simulation.schedule(simulation.now(), action_of<&Log::add>(log, 1));
      simulation.sleep(0);
      log.add(2);
      simulation.sleep(3);
      log.add(11);
    });
  }
  EXPECT_EQ(simulation.run().virtual_time, 3);
  EXPECT_EQ(log.values, (std::vector<std::uint64_t>{2, 2, 1, 1, 9, 10, 11, 11}));
}

TEST(Simulation, SleepsTakeVirtualTimeOnly) {
  Simulation simulation({.ranks = 2});
  std::vector<Time> woke;
  for (int rank = 0; rank < 2; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      simulation.sleep(rank == 0 ? 1'800'000'000'000 : 7);
      woke.push_back(simulation.now());
    });
  }
  EXPECT_EQ(simulation.run().virtual_time, 1'800'000'000'000);
  EXPECT_EQ(woke, (std::vector<Time>{7, 1'800'000'000'000}));
}

TEST(Simulation, SameSeedGivesTheSameRun) {
  RandomWalk scheduler;
  std::string first_log, second_log;
  const Report first = run_random_sleepers(7, &scheduler, &first_log);
  const Report second = run_random_sleepers(7, &scheduler, &second_log);
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first_log, second_log);
}

TEST(Simulation, TheDigestIsTheSameOnEveryMachine) {
  RandomWalk scheduler;
  EXPECT_EQ(run_random_sleepers(7, &scheduler).digest, 6951265326226656109u);
}

TEST(Simulation, SeedsGiveDifferentRuns) {
  RandomWalk scheduler;
  std::set<std::uint64_t> digests;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    digests.insert(run_random_sleepers(seed, &scheduler).digest);
  }
  EXPECT_EQ(digests.size(), 50u);
}

TEST(Simulation, RanksKeepTheirRandomStreamWhateverTheSchedule) {
  const auto draw = [](Scheduler* scheduler) {
    std::vector<std::uint64_t> drawn(3);
    Simulation simulation({.ranks = 3, .seed = 11, .scheduler = scheduler});
    for (int rank = 0; rank < 3; ++rank) {
      simulation.spawn(rank, "main", [&, rank] {
        simulation.sleep(0);
        drawn[rank] = simulation.random_u64(rank);
      });
    }
    simulation.run();
    return drawn;
  };
  RandomWalk random_walk;
  EXPECT_EQ(draw(nullptr), draw(&random_walk));
}

TEST(Simulation, ReportsWhatEachMainThrew) {
  Simulation simulation({.ranks = 3});
  simulation.spawn(0, "main", [] {});
  simulation.spawn(1, "main", [] { throw std::runtime_error("one"); });
  simulation.spawn(2, "main", [] { throw 2; });
  const Report report = simulation.run();
  EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kReturned);
  EXPECT_EQ(report.ranks[1].outcome, RankOutcome::kThrew);
  EXPECT_THROW(std::rethrow_exception(report.ranks[1].error), std::runtime_error);
  EXPECT_THROW(std::rethrow_exception(report.ranks[2].error), int);
}

TEST(Simulation, ExceptionsBelongToTheFiberThatCaughtThem) {
  Simulation simulation({.ranks = 8});
  for (int rank = 0; rank < 8; ++rank) {
    simulation.spawn(rank, "main", [&simulation, rank] {
      for (int i = 0; i < 20; ++i) {
        try {
          throw rank;
        } catch (const int&) {
          EXPECT_EQ(std::uncaught_exceptions(), 0);
          simulation.sleep(1 + rank % 3);
          try {
            throw;
          } catch (const int& mine) {
            EXPECT_EQ(mine, rank);
          }
        }
      }
    });
  }
  simulation.run();
}

TEST(Simulation, WaitsEndByWakeUpOrDeadline) {
  Simulation simulation({.ranks = 2});
  WaitList list;
  std::vector<bool> woken;
  simulation.spawn(0, "main", [&] {
    woken.push_back(list.wait(simulation, {.what = "rank 1"}, {.at = 10}));
    woken.push_back(list.wait(simulation, {.what = "rank 1"}, {.at = 20}));
    EXPECT_EQ(simulation.now(), 20);
    woken.push_back(list.wait(simulation, {.what = "rank 1"}, {.at = 20}));
  });
  simulation.spawn(1, "main", [&] {
    simulation.sleep(5);
    list.wake_all(simulation);
  });
  simulation.run();
  EXPECT_EQ(woken, (std::vector<bool>{true, false, false}));
}

TEST(Simulation, JoinWaitsForTheEnd) {
  Simulation simulation({});
  Time joined_at = 0;
  simulation.spawn(0, "main", [&] {
    const auto task = simulation.spawn(0, "task", [&] { simulation.sleep(9); });
    simulation.join(*task);
    joined_at = simulation.now();
  });
  simulation.run();
  EXPECT_EQ(joined_at, 9);
}

TEST(Simulation, StopsAtTheEventLimitAndSaysSo) {
  Simulation simulation({.event_count_max = 1000});
  bool unwound = false;
  simulation.spawn(0, "main", [&] {
    struct Guard {
      bool& flag;
      ~Guard() { flag = true; }
    } guard{unwound};
    while (true) simulation.sleep(1);
  });
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict, Verdict::kEventLimit);
  EXPECT_EQ(report.verdict_text,
            "event limit of 1000 reached at t=333 ns: the ranks go round in circles, or the limit "
            "is too low");
  EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kStopped);
  EXPECT_TRUE(unwound);
}

TEST(Simulation, StopsAFiberThatSwallowsItsDeath) {
  Simulation simulation({.event_count_max = 1000});
  simulation.spawn(0, "main", [&] {
    while (true) {
      try {
        simulation.sleep(1);
      } catch (...) {
      }
    }
  });
  const Report report = simulation.run();
  EXPECT_EQ(report.verdict, Verdict::kEventLimit);
  EXPECT_EQ(report.abandoned, 1u);
  EXPECT_EQ(report.ranks[0].outcome, RankOutcome::kStopped);
}

TEST(Simulation, RefusesAWorldWithoutRanks) {
  EXPECT_THROW(Simulation({.ranks = 0}), std::invalid_argument);
}

TEST(Simulation, GivesEveryEventToTheTrace) {
  struct Lines : TraceSink {
    void on_event(const Event& event) override { text += to_string(event) + "\n"; }
    std::string text;
  } lines;
  Simulation simulation({.trace = &lines});
  simulation.spawn(0, "main", [&] { simulation.sleep(3'000); });
  const Report report = simulation.run();
  EXPECT_EQ(lines.text,
            "0 ns rank 0 spawn 1 main\n"
            "0 ns rank 0 fiber 1 run\n"
            "0 ns rank 0 fiber 1 wait sleep\n"
            "3 us rank 0 deadline 1\n"
            "3 us rank 0 fiber 1 run\n"
            "3 us rank 0 end 1\n");
  EXPECT_EQ(report.events, 6u);
}

TEST(Simulation, ThousandsRunSideBySideWithoutInterference) {
  RandomWalk scheduler;
  std::vector<std::uint64_t> expected;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    expected.push_back(run_random_sleepers(seed, &scheduler).digest);
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      RandomWalk own;
      for (int i = 0; i < 500; ++i) {
        const auto seed = static_cast<std::uint64_t>((i + t) % 10);
        if (run_random_sleepers(seed, &own).digest != expected[seed]) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Simulation, HoldsThousandsOfRanks) {
  Simulation simulation({.ranks = 4096});
  int turns = 0;
  for (int rank = 0; rank < 4096; ++rank) {
    simulation.spawn(rank, "main", [&] {
      simulation.sleep(1);
      ++turns;
    });
  }
  EXPECT_EQ(simulation.run().switches, 2u * 4096);
  EXPECT_EQ(turns, 4096);
}

TEST(FormatTime, IsExactInTheLargestUnit) {
  EXPECT_EQ(format_time(0), "0 ns");
  EXPECT_EQ(format_time(999), "999 ns");
  EXPECT_EQ(format_time(3'000), "3 us");
  EXPECT_EQ(format_time(10'242), "10.242 us");
  EXPECT_EQ(format_time(30'000'300'000), "30.0003 s");
  EXPECT_EQ(format_time(1'000'001), "1.000001 ms");
}

}  // namespace
}  // namespace ddproof::sim
