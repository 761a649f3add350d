// Simulated worlds through the seams: process groups, runtimes, verdicts, deaths.
#include "backends/sim/sim_world.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/sim/sim_backend.h"
#include "tests/support/leaks.h"

namespace ddproof {
namespace {

std::string what_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

CommError comm_error_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const CommError& e) {
    return e;
  }
  return CommError(CommErrorKind::kUnsupported, "no error");
}

SimWorldOptions world_of(int ranks, std::uint64_t seed = 0) {
  SimWorldOptions options;
  options.world.world_size = ranks;
  options.world.seed = seed;
  return options;
}

Buffer buffer_of(std::vector<float>& values) { return Buffer::of(std::span(values)); }

TEST(SimWorld, AllReducesOnManyRanks) {
  const sim::Report report = run_sim_world(world_of(100), [](RankContext& rank) {
    std::vector<float> values{static_cast<float>(rank.group.rank()), 1};
    rank.group.all_reduce(buffer_of(values))->wait();
    EXPECT_EQ(values, (std::vector<float>{4950, 100}));
  });
  rethrow(report);
  EXPECT_GT(report.messages, 0u);
  EXPECT_GT(report.virtual_time, 0);
}

TEST(SimWorld, SameSeedGivesTheSameDigestAndOthersDiffer) {
  std::set<std::uint64_t> digests;
  for (const std::uint64_t seed : {1, 1, 2, 3}) {
    digests.insert(run_sim_world(world_of(8, seed), [](RankContext& rank) {
                     std::vector<float> values{1};
                     rank.group.all_reduce(buffer_of(values))->wait();
                     rank.runtime.sleep_for(Duration(rank.runtime.random_u64() % 1000));
                     rank.group.barrier()->wait();
                   }).digest);
  }
  EXPECT_EQ(digests.size(), 3u);
}

TEST(SimWorld, ARankThatLeavesEarlyIsADeadlockThatNamesItAndTheCall) {
  const int line = __LINE__ + 6;
  const sim::Report report = run_sim_world(world_of(4), [](RankContext& rank) {
    std::vector<float> values{1};
    rank.group.barrier()->wait();
    if (rank.group.rank() == 3) return;
    try {
      rank.group.all_reduce(buffer_of(values))->wait();
      FAIL() << "completed without rank 3";
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommErrorKind::kDeadlock);
      EXPECT_EQ(error.culprits(), std::vector<int>{3});
      throw;
    }
  });
  EXPECT_EQ(report.verdict, sim::Verdict::kDeadlock);
  const std::string call =
      " waits in all_reduce #2 (sum, float32 [1]) at sim_world_test.cc:" + std::to_string(line) +
      " for rank 3";
  EXPECT_NE(report.verdict_text.find(call), std::string::npos) << report.verdict_text;
  EXPECT_TRUE(report.verdict_text.ends_with("; rank 3 has returned")) << report.verdict_text;
  EXPECT_EQ(what_of(report.ranks[0].error), report.verdict_text);
  EXPECT_LT(report.virtual_time, 1'000'000) << "waited for a timeout";
}

TEST(SimWorld, ExchangedCallsDeadlockAtOnce) {
  const sim::Report report = run_sim_world(world_of(3), [](RankContext& rank) {
    std::vector<float> values{1};
    if (rank.group.rank() == 1) rank.group.barrier()->wait();
    rank.group.all_reduce(buffer_of(values))->wait();
    if (rank.group.rank() != 1) rank.group.barrier()->wait();
  });
  EXPECT_EQ(report.verdict, sim::Verdict::kDeadlock);
  for (const sim::RankReport& rank : report.ranks) {
    EXPECT_EQ(comm_error_of(rank.error).kind(), CommErrorKind::kDeadlock);
  }
}

TEST(SimWorld, LaterCallsAfterADeadlockFailTheSameWay) {
  run_sim_world(world_of(2), [](RankContext& rank) {
    if (rank.group.rank() == 1) return;
    for (int i = 0; i < 2; ++i) {
      try {
        rank.group.barrier()->wait();
        FAIL() << "completed alone";
      } catch (const CommError& error) {
        EXPECT_EQ(error.kind(), CommErrorKind::kDeadlock);
      }
    }
  });
}

TEST(SimWorld, ACrashIsPeerLostOnEveryLiveRankAndNamesTheDead) {
  SimWorldOptions options = world_of(8);
  options.faults = sim::parse_fault_plan("crash rank=2 operation=3");
  const sim::Report report = run_sim_world(options, [](RankContext& rank) {
    for (int step = 0; step < 5; ++step) {
      std::vector<float> values(1000, 1);
      rank.group.all_reduce(buffer_of(values))->wait();
    }
  });
  EXPECT_EQ(report.verdict, sim::Verdict::kNone);
  for (int rank = 0; rank < 8; ++rank) {
    if (rank == 2) {
      EXPECT_EQ(report.ranks[rank].outcome, sim::RankOutcome::kCrashed);
      continue;
    }
    const CommError error = comm_error_of(report.ranks[rank].error);
    EXPECT_EQ(error.kind(), CommErrorKind::kPeerLost);
    EXPECT_EQ(error.culprits(), std::vector<int>{2});
    EXPECT_NE(std::string(error.what()).find("rank 2 is lost (it crashed)"), std::string::npos)
        << error.what();
  }
}

TEST(SimWorld, ARankThatThrowsIsLostToTheOthersAndItsErrorComesOut) {
  SimBackend backend;
  try {
    backend.run_world({.world_size = 4}, [](RankContext& rank) {
      if (rank.group.rank() == 2) throw std::logic_error("the cause");
      rank.group.barrier()->wait();
    });
    FAIL() << "nothing thrown";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "the cause");
  }
}

TEST(SimWorld, ExceptionsThatAreNoStdExceptionComeOut) {
  SimBackend backend;
  EXPECT_THROW(backend.run_world({.world_size = 2}, [](RankContext&) { throw 7; }), int);
}

TEST(SimWorld, AHungRankIsATimeoutWhenTimeoutsMayEndDeadlocks) {
  for (const bool timeouts : {false, true}) {
    SimWorldOptions options = world_of(3);
    options.faults = sim::parse_fault_plan("hang rank=1 operation=2");
    options.timeouts_end_deadlocks = timeouts;
    options.world.timeout = std::chrono::seconds(30);
    const sim::Report report = run_sim_world(options, [](RankContext& rank) {
      rank.group.barrier()->wait();
      rank.group.barrier()->wait();
    });
    const CommError error = comm_error_of(report.ranks[0].error);
    EXPECT_EQ(error.kind(), timeouts ? CommErrorKind::kTimeout : CommErrorKind::kDeadlock);
    EXPECT_EQ(error.culprits(), std::vector<int>{1}) << error.what();
    EXPECT_EQ(report.ranks[1].outcome, sim::RankOutcome::kHung);
    EXPECT_EQ(report.virtual_time >= 30'000'000'000, timeouts);
  }
}

TEST(SimWorld, TheLimitOfACallCountsVirtualTime) {
  for (const int seconds : {1'799, 1'801}) {
    const sim::Report report = run_sim_world(world_of(2), [&](RankContext& rank) {
      if (rank.group.rank() == 1) rank.runtime.charge(std::chrono::seconds(seconds));
      rank.group.barrier()->wait();
    });
    const bool in_time = seconds == 1'799;
    EXPECT_EQ(report.ranks[0].error == nullptr, in_time);
    if (in_time) continue;
    const CommError error = comm_error_of(report.ranks[0].error);
    EXPECT_EQ(error.kind(), CommErrorKind::kTimeout);
    EXPECT_EQ(error.culprits(), std::vector<int>{1});
  }
}

TEST(SimWorld, SubgroupsTalkAtTheSameTimeAsTheWorld) {
  rethrow(run_sim_world(world_of(6), [](RankContext& rank) {
    const int color = rank.group.rank() % 2;
    const auto half = rank.group.split(color, -rank.group.rank());
    ASSERT_EQ(half->size(), 3);
    std::vector<float> mine{static_cast<float>(rank.group.rank())}, all{1};
    const WorkPtr in_half = half->all_reduce(buffer_of(mine));
    const WorkPtr in_world = rank.group.all_reduce(buffer_of(all));
    in_world->wait();
    in_half->wait();
    EXPECT_EQ(mine[0], color == 0 ? 6 : 9);
    EXPECT_EQ(all[0], 6);
    EXPECT_EQ(half->rank(), 2 - rank.group.rank() / 2);
  }));
}

TEST(SimWorld, EveryRankHasTheLaunchersVariables) {
  SimWorldOptions options = world_of(5);
  options.world.placement = {0, 1, 1, 0, 2};
  std::vector<std::string> seen(5);
  rethrow(run_sim_world(options, [&](RankContext& rank) {
    const Environment& environment = rank.runtime.environment();
    seen[rank.group.rank()] = *environment.get("RANK") + *environment.get("LOCAL_RANK") +
                              *environment.get("LOCAL_WORLD_SIZE") +
                              *environment.get("GROUP_RANK") + *environment.get("WORLD_SIZE");
    EXPECT_FALSE(environment.get("HOME").has_value());
    EXPECT_EQ(environment.all().front(), "GROUP_RANK=" + *environment.get("GROUP_RANK"));
  }));
  EXPECT_EQ(seen, (std::vector<std::string>{"00205", "10215", "21215", "31205", "40125"}));
}

TEST(SimWorld, RanksShareOneFileSystem) {
  rethrow(run_sim_world(world_of(3), [](RankContext& rank) {
    FileSystem& files = rank.runtime.files();
    const std::vector<std::byte> bytes{std::byte{1}, std::byte{2}};
    if (rank.group.rank() == 0) {
      files.make_directory("/out");
      const auto file = files.create("/out/a.tmp");
      file->append(bytes);
      file->sync();
      files.rename("/out/a.tmp", "/out/a");
    }
    rank.group.barrier()->wait();
    EXPECT_EQ(read_file(files, "/out/a"), bytes);
    EXPECT_EQ(files.list("/out"), std::vector<std::string>{"a"});
    EXPECT_THROW(files.open("/out/a.tmp"), DataError);
  }));
}

TEST(SimRuntime, MonitorsTasksAndSleepsWorkTogether) {
  rethrow(run_sim_world(world_of(1), [](RankContext& rank) {
    Runtime& runtime = rank.runtime;
    const auto monitor = runtime.make_monitor();
    bool ready = false;
    const auto task = runtime.spawn("task", [&] {
      runtime.sleep_for(std::chrono::seconds(5));
      MonitorLock lock(*monitor);
      ready = true;
      monitor->notify_all();
    });
    {
      MonitorLock lock(*monitor);
      EXPECT_FALSE(monitor->wait(std::chrono::seconds(2), {"early", CallSite::current(), {}}));
      while (!ready) monitor->wait(kForever, {"ready", CallSite::current(), {}});
      EXPECT_EQ(runtime.now(), std::chrono::seconds(5));
    }
    task->join();
    const auto failing = runtime.spawn("failing", [] { throw 3; });
    EXPECT_THROW(failing->join(), int);
  }));
}

TEST(SimRuntime, ADeadRankNeedNotHaveJoinedItsTasks) {
  SimWorldOptions options = world_of(1);
  options.event_count_max = 1'000;
  const sim::Report report = run_sim_world(options, [](RankContext& rank) {
    const auto ended = rank.runtime.spawn("ended", [] {});
    const auto waiting = rank.runtime.spawn("waiting", [&] { rank.runtime.sleep_for(kForever); });
    while (true) rank.runtime.sleep_for(Duration(1));
  });
  EXPECT_EQ(report.ranks[0].outcome, sim::RankOutcome::kStopped);
  EXPECT_EQ(report.abandoned, 0u);
}

TEST(SimRuntime, PollingLetsTimePass) {
  rethrow(run_sim_world(world_of(2), [](RankContext& rank) {
    const WorkPtr work = rank.group.barrier();
    while (!work->is_completed()) {
    }
    const TimePoint end = rank.runtime.now() + std::chrono::microseconds(5);
    while (rank.runtime.now() < end) {
    }
  }));
}

TEST(SimRuntime, AnEndlessPollMeetsTheEventLimit) {
  SimWorldOptions options = world_of(1);
  options.event_count_max = 10'000;
  const sim::Report report = run_sim_world(options, [](RankContext& rank) {
    while (true) rank.runtime.now();
  });
  EXPECT_THROW(rethrow(report), sim::EventLimitError);
}

TEST(SimRuntime, AnEndlessPollOfWorkEndsWithItsRank) {
  SimWorldOptions options = world_of(2);
  options.faults = sim::parse_fault_plan("crash rank=1 operation=1");
  const sim::Report report = run_sim_world(options, [](RankContext& rank) {
    const WorkPtr work = rank.group.barrier();
    while (rank.group.rank() == 1 || !work->is_completed()) work->is_completed();
  });
  EXPECT_EQ(report.ranks[0].outcome, sim::RankOutcome::kReturned);
  EXPECT_EQ(report.ranks[1].outcome, sim::RankOutcome::kCrashed);
  EXPECT_EQ(report.abandoned, 0u);
}

TEST(SimRuntime, ALockCycleIsADeadlock) {
  const LeaksAllowed leaks;
  const sim::Report report = run_sim_world(world_of(1), [](RankContext& rank) {
    const auto a = rank.runtime.make_monitor(), b = rank.runtime.make_monitor();
    const auto take = [&](Monitor& first, Monitor& second) {
      MonitorLock outer(first);
      rank.runtime.sleep_for(Duration(10));
      MonitorLock inner(second);
    };
    const auto task = rank.runtime.spawn("task", [&] { take(*b, *a); });
    take(*a, *b);
    task->join();
  });
  EXPECT_EQ(report.verdict_text, "deadlock at t=10 ns: rank 0 waits in lock");
  EXPECT_EQ(report.abandoned, 2u);
  try {
    rethrow(report);
    FAIL() << "a stuck rank is not reported";
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommErrorKind::kDeadlock);
    EXPECT_EQ(error.what(), report.verdict_text);
  }
}

TEST(SimBackend, RefusesWorldsThatCannotBe) {
  SimBackend backend;
  const auto nothing = [](RankContext&) {};
  EXPECT_THROW(backend.run_world({.world_size = 0}, nothing), ConfigError);
  const auto refusal = [&](const WorldOptions& options) -> std::string {
    try {
      backend.run_world(options, nothing);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal({.world_size = 2, .placement = {0, -1}}),
            "rank 1 is on node -1; nodes count from 0");
  EXPECT_EQ(refusal({.world_size = 2, .placement = {0}}),
            "the placement has the nodes of 1 rank, the world size is 2");
  EXPECT_THROW(backend.run_world({.world_size = 2, .timeout = Duration(0)}, nothing), ConfigError);
}

}  // namespace
}  // namespace ddproof
