// Campaigns: the portfolio finds planted bugs, says what it proves, and shrinks what it finds.
#include "simulator/campaign.h"

#include <gtest/gtest.h>

#include <utility>

#include "simulator/replay.h"
#include "simulator/shrink_schedule.h"
#include "simulator/wait_list.h"
#include "tests/unit/planted_bugs.h"

namespace ddproof::sim {
namespace {

// The ranks share the order of turns without saying so: a search that believes them sees one trace.
Program program_of(const test::PlantedBug& bug) {
  return [bug](const RunSettings& settings) {
    const std::string order = test::order_of_turns(bug, settings.seed, *settings.scheduler);
    return RunResult{{}, bug.is_hit(order) ? "the planted bug" : ""};
  };
}

// Two ranks take two locks in opposite orders; `turns` pass before.
Program crossed_locks(int ranks, int turns) {
  return [=](const RunSettings& settings) {
    Simulation simulation({.ranks = ranks,
                           .seed = settings.seed,
                           .scheduler = settings.scheduler,
                           .observer = settings.observer});
    struct Lock {
      bool taken = false;
      ObjectKey key;
      WaitList waiters;
    };
    std::vector<Lock> locks;
    for (int i = 0; i < 2; ++i) {
      locks.push_back({false, simulation.new_object(), WaitList(simulation)});
    }
    const auto acquire = [&](Lock& lock) {
      simulation.touch(lock.key, Access::kWrite);
      while (lock.taken) lock.waiters.wait(simulation, {.what = "lock"});
      lock.taken = true;
    };
    const auto release = [&](Lock& lock) {
      simulation.touch(lock.key, Access::kWrite);
      lock.taken = false;
      lock.waiters.wake_all(simulation);
    };
    for (int rank = 0; rank < ranks; ++rank) {
      simulation.spawn(rank, "main", [&, rank] {
        for (int turn = 0; turn < turns; ++turn) simulation.sleep(0);
        if (rank > 1) return;
        Lock& first = locks[static_cast<std::size_t>(rank)];
        Lock& second = locks[static_cast<std::size_t>(1 - rank)];
        acquire(first);
        simulation.sleep(0);
        acquire(second);
        release(second);
        release(first);
      });
    }
    RunResult result{simulation.run(), ""};
    if (result.report.verdict == Verdict::kDeadlock) result.failure = "deadlock";
    return result;
  };
}

TEST(Campaign, ProvesWhatItCanSearchThrough) {
  const Program program = [](const RunSettings& settings) {
    Simulation simulation({.ranks = 3,
                           .seed = settings.seed,
                           .scheduler = settings.scheduler,
                           .observer = settings.observer});
    const ObjectKey object = simulation.new_object();
    for (int rank = 0; rank < 3; ++rank) {
      simulation.spawn(rank, "main", [&] { simulation.touch(object, Access::kWrite); });
    }
    return RunResult{simulation.run(), ""};
  };
  const CampaignResult result = run_campaign(program, {});
  EXPECT_TRUE(result.exhausted);
  EXPECT_EQ(result.runs, 7u);
  EXPECT_EQ(to_string(result), "exhaustive: 10 states, 6 traces");
}

TEST(Campaign, FindsBySearchWhatFirstComeFirstServedMisses) {
  const Program program = [](const RunSettings& settings) {
    Simulation simulation({.ranks = 4,
                           .seed = settings.seed,
                           .scheduler = settings.scheduler,
                           .observer = settings.observer});
    const ObjectKey object = simulation.new_object();
    bool is_written = false;
    bool came_too_early = false;
    for (int rank = 0; rank < 4; ++rank) {
      simulation.spawn(rank, "main", [&, rank] {
        simulation.touch(object, rank == 0 ? Access::kWrite : Access::kRead);
        if (rank == 0) is_written = true;
        if (rank == 3 && !is_written) came_too_early = true;
      });
    }
    Report report = simulation.run();
    return RunResult{std::move(report), came_too_early ? "rank 3 came too early" : ""};
  };
  const CampaignResult result = run_campaign(program, {});
  EXPECT_EQ(result.failure, "rank 3 came too early");
  EXPECT_EQ(result.found_by, "search");
  EXPECT_LE(result.schedule.choices.size(), 3u);
  Replay replay(result.schedule);
  EXPECT_EQ(program({.seed = 0, .scheduler = &replay}).failure, result.failure);
}

TEST(Campaign, SaysWhatItCanHaveMissed) {
  const test::PlantedBug none{0, {3, 3}, [](const std::string&) { return false; }};
  const CampaignResult result = run_campaign(program_of(none), {.runs = 400, .search_runs_max = 0});
  EXPECT_EQ(
      to_string(result),
      "P(missed bug of depth <= 1) <= 1.7e-34, a run hits it with >= 0.5; P(missed bug of depth "
      "<= 2) <= 0.00022, a run hits it with >= 0.071; P(missed bug of depth <= 3) <= 0.36, a run "
      "hits it with >= 0.01; 401 runs, at most 2 fibers and 5 decisions");
}

TEST(Campaign, OfOneStrategyMakesItsRunsOnly) {
  const test::PlantedBug none{0, {3, 3}, [](const std::string&) { return false; }};
  const auto claim = [&](const CampaignOptions& options) {
    return to_string(run_campaign(program_of(none), options));
  };
  EXPECT_EQ(claim({.strategy = Strategy::kFirstCome, .runs = 1}),
            "1 run, at most 2 fibers and 5 decisions");
  EXPECT_EQ(claim({.strategy = Strategy::kRandomWalk, .runs = 9}),
            "9 runs, at most 2 fibers and 5 decisions");
  // 1 / (2 * 8^1), missed 9 times: (1 - 1/16)^9.
  EXPECT_EQ(
      claim({.strategy = Strategy::kPct, .runs = 9, .pct_depth = 2, .pct_steps = 8}),
      "P(missed bug of depth <= 2) <= 0.56, a run hits it with >= 0.062; 9 runs, at most 2 fibers "
      "and 5 decisions");
  // A run made more decisions than changes are drawn from: no promise.
  EXPECT_EQ(
      claim({.strategy = Strategy::kPct, .runs = 9, .pct_depth = 2, .pct_steps = 4}),
      "P(missed bug of depth <= 2) <= 1, a run hits it with >= 0; 9 runs, at most 2 fibers and "
      "5 decisions");
}

TEST(Campaign, OfASearchThatIsCutShortClaimsNoProof) {
  const Program program = crossed_locks(4, 1);
  const CampaignResult result =
      run_campaign(program, {.strategy = Strategy::kSearch, .search_runs_max = 1});
  EXPECT_FALSE(result.exhausted);
  EXPECT_EQ(result.runs, 1u);
}

TEST(Campaign, FindsPlantedBugsOfEveryDepth) {
  for (const test::PlantedBug& bug : test::planted_bugs()) {
    const Program program = program_of(bug);
    const CampaignResult result = run_campaign(program, {.runs = 20'000, .search_runs_max = 0});
    ASSERT_EQ(result.failure, "the planted bug") << bug.depth;
    Replay replay(result.schedule);
    EXPECT_EQ(program({.seed = result.schedule.seed, .scheduler = &replay}).failure,
              "the planted bug");
    EXPECT_NO_THROW(replay.check());
  }
}

TEST(Campaign, PrintsTheLineThatReplaysAFailure) {
  const Program program = crossed_locks(2, 0);
  const CampaignResult result = run_campaign(program, {.seed = 3});
  EXPECT_EQ(to_string(result),
            "failed: deadlock; found by round robin in run 1; replay with "
            "schedule s1.3.4..f2438fc9");
  Replay replay(parse_schedule("s1.3.4..f2438fc9"));
  EXPECT_EQ(program({.seed = 3, .scheduler = &replay}).failure, "deadlock");
}

// A rank hits "late" in one schedule of two, and never "never".
Program with_probes() {
  return [](const RunSettings& settings) {
    Simulation simulation({.ranks = 2, .seed = settings.seed, .scheduler = settings.scheduler});
    bool is_first = true;
    for (int rank = 0; rank < 2; ++rank) {
      simulation.spawn(rank, "main", [&, rank] {
        simulation.hit("ran");
        if (std::exchange(is_first, false) && rank == 1) simulation.hit("late");
      });
    }
    return RunResult{simulation.run(), ""};
  };
}

TEST(Campaign, CountsProbesAndNamesThoseThatNoRunHit) {
  CampaignOptions options{.strategy = Strategy::kRandomWalk, .runs = 50};
  options.probes = {"ran", "late"};
  const CampaignResult hit = run_campaign(with_probes(), options);
  EXPECT_EQ(hit.missed, "");
  EXPECT_EQ(hit.probes.at("ran"), 100u);
  EXPECT_GT(hit.probes.at("late"), 0u);
  EXPECT_LT(hit.probes.at("late"), 50u);
  options.probes = {"never", "ran", "not once"};
  const CampaignResult missed = run_campaign(with_probes(), options);
  EXPECT_EQ(missed.missed, "no run hit the probe \"never\", \"not once\"");
  EXPECT_EQ(to_string(missed).find("failed: no run hit the probe \"never\", \"not once\"; "), 0u);
}

TEST(Campaign, GivesTheSameResultForTheSameSeed) {
  const Program program = program_of(test::planted_bugs()[2]);
  const CampaignOptions options{.seed = 11, .runs = 20'000, .search_runs_max = 0};
  EXPECT_EQ(to_string(run_campaign(program, options)), to_string(run_campaign(program, options)));
}

TEST(ShrinkSchedule, LeavesNoChoiceThatIsNotNeeded) {
  // Rank 4 must run before all others: from wherever it waits, one choice.
  const test::PlantedBug bug{
      1, {6, 6, 6, 6, 6}, [](const std::string& order) { return order[0] == '4'; }};
  const CampaignResult result = run_campaign(program_of(bug), {.runs = 1000, .search_runs_max = 0});
  EXPECT_EQ(result.schedule.choices, (std::vector<Choice>{{0, 4, 5}}));
}

TEST(ShrinkSchedule, KeepsTheFailureAndReplaysExactly) {
  for (const test::PlantedBug& bug : test::planted_bugs()) {
    const Program program = program_of(bug);
    const CampaignResult result = run_campaign(program, {.runs = 20'000, .search_runs_max = 0});
    EXPECT_EQ(shrink_schedule(program, result.schedule, "the planted bug"), result.schedule);
    EXPECT_LE(result.schedule.choices.size(), 8u) << to_string(result.schedule);
  }
}

TEST(ShrinkSchedule, DoesNotTakeAnotherFailureForTheSame) {
  const Program program = [](const RunSettings& settings) {
    const test::PlantedBug bug{0, {3, 3}, nullptr};
    const std::string order = test::order_of_turns(bug, settings.seed, *settings.scheduler);
    return RunResult{{}, order[0] == '0' ? "rank 0 is first" : "rank 1 is first"};
  };
  const Schedule schedule{0, 5, {{0, 1, 2}, {2, 1, 2}}};
  EXPECT_EQ(shrink_schedule(program, schedule, "rank 1 is first").choices,
            (std::vector<Choice>{{0, 1, 2}}));
}

}  // namespace
}  // namespace ddproof::sim
