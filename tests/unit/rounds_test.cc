// Rounds of simulated nodes, one rule of rounds.h a test. agent_test.cc has whole jobs.
#include "reference/launch/rounds.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "tests/support/hooked_store.h"
#include "tests/support/store_world.h"

namespace ddproof {
namespace {

using std::chrono::seconds;

// What a node saw, in words.
std::string told(const std::optional<RoundOutcome>& outcome) {
  if (!outcome) return "cancelled";
  if (!outcome->round) {
    return outcome->end.status == 0
               ? "succeeded"
               : "ended " + std::to_string(outcome->end.status) + ": " + outcome->end.text;
  }
  const Round& round = *outcome->round;
  return "round " + std::to_string(round.number) + ", node " + std::to_string(round.group_rank) +
         "/" + std::to_string(round.group_size()) + ", ranks from " +
         std::to_string(round.first_rank()) + "/" + std::to_string(round.world_size()) +
         ", restarts " + std::to_string(round.restarts) +
         (round.reason.empty() ? "" : ", " + round.reason);
}

RoundsOptions node(const std::string& host, int nodes_min, int nodes_max) {
  return {.nodes_min = nodes_min, .nodes_max = nodes_max, .host = host, .pid = 7};
}

RoundsOptions static_node(const std::string& host, int node_rank, int nodes) {
  RoundsOptions options = node(host, nodes, nodes);
  options.node_rank = node_rank;
  return options;
}

// A job's nodes and what each was told, with the second at which it was.
class RoundsTest : public testing::Test {
 protected:
  using Script = std::function<void(Rounds&, Runtime&)>;

  // Node `rank` comes at `second` and does what `script` says; what it is refused with is told,
  // too.
  void come(int rank, int second, const RoundsOptions& options, const Script& script) {
    world_.start(rank, seconds(second),
                 [this, rank, options, script](Runtime& runtime, Store& store) {
                   Rounds rounds(store, runtime, options);
                   try {
                     script(rounds, runtime);
                   } catch (const ConfigError& error) {
                     tell(rank, std::string("refused: ") + error.what());
                   } catch (const CommError& error) {
                     tell(rank, std::string("error: ") + error.what());
                   }
                 });
  }
  std::optional<RoundOutcome> join(int rank, Rounds& rounds) {
    auto outcome = rounds.join([&] { return Meeting{"host" + std::to_string(rank), 1}; });
    tell(rank, told(outcome));
    return outcome;
  }
  // Joins until the job has ended, and lets its workers run for ever.
  Script follow(int rank) {
    return [this, rank](Rounds& rounds, Runtime&) {
      while (true) {
        const auto outcome = join(rank, rounds);
        if (!outcome || !outcome->round || !rounds.wait_over()) return;
      }
    };
  }
  void tell(int rank, const std::string& text) {
    const auto second = world_.simulation().now() / 1'000'000'000;
    told_[static_cast<std::size_t>(rank)].push_back(std::to_string(second) + " s: " + text);
  }
  // Ends what still runs at `second`, by silence.
  void run_until(int second) {
    world_.direct([this, second](Runtime& runtime) {
      runtime.sleep_for(seconds(second));
      for (int rank = 0; rank < kNodes; ++rank) world_.hang(rank);
    });
    world_.run();
  }
  using Told = std::vector<std::string>;

  static constexpr int kNodes = 5;
  StoreWorld world_{kNodes};
  std::vector<Told> told_{kNodes};
};

TEST_F(RoundsTest, NodesOfAFixedNumberMeetAtOnceInTheOrderOfTheirHosts) {
  RoundsOptions big = node("c", 3, 3);
  big.local_world_size = 4;
  come(0, 0, big, follow(0));
  come(1, 1, node("b", 3, 3), follow(1));
  come(2, 9, node("a", 3, 3), follow(2));
  run_until(20);
  EXPECT_EQ(told_[0], (Told{"9 s: round 1, node 2/3, ranks from 2/6, restarts 0"}));
  EXPECT_EQ(told_[1], (Told{"9 s: round 1, node 1/3, ranks from 1/6, restarts 0"}));
  EXPECT_EQ(told_[2], (Told{"9 s: round 1, node 0/3, ranks from 0/6, restarts 0"}));
}

TEST_F(RoundsTest, StaticNodesHaveTheRanksTheyWereGiven) {
  come(0, 0, static_node("a", 1, 2), follow(0));
  come(1, 0, static_node("b", 0, 2), follow(1));
  run_until(20);
  EXPECT_EQ(told_[0], (Told{"0 s: round 1, node 1/2, ranks from 1/2, restarts 0"}));
  EXPECT_EQ(told_[1], (Told{"0 s: round 1, node 0/2, ranks from 0/2, restarts 0"}));
}

TEST_F(RoundsTest, BelowTheMaximumARoundIsCompleteAfterTheLastCall) {
  come(0, 0, node("a", 2, 4), follow(0));
  come(1, 10, node("b", 2, 4), follow(1));
  come(2, 39, node("c", 2, 4), follow(2));
  run_until(60);
  for (const std::size_t rank : {0u, 1u, 2u}) {
    EXPECT_EQ(told_[rank], (Told{"40 s: round 1, node " + std::to_string(rank) + "/3, ranks from " +
                                 std::to_string(rank) + "/3, restarts 0"}));
  }
}

TEST_F(RoundsTest, ANodeWhoseProcessDiesIsMissedAtOnce) {
  for (const int rank : {0, 1, 2}) {
    come(rank, 0, node(std::string(1, static_cast<char>('a' + rank)), 2, 3), follow(rank));
  }
  world_.direct([this](Runtime& runtime) {
    runtime.sleep_for(seconds(100));
    world_.crash(1);
  });
  run_until(200);
  EXPECT_EQ(told_[0].back(),
            "131 s: round 2, node 0/2, ranks from 0/2, restarts 0, b (pid 7) is lost: its process "
            "ended");
  EXPECT_EQ(told_[2].size(), 2u);
}

TEST_F(RoundsTest, ASilentNodeIsMissedAfterItsHeartbeatsWhoeverLooksAfterTheOthers) {
  for (const int silent : {0, 1}) {
    StoreWorld world(2);
    std::vector<std::string> seen;
    for (const int rank : {0, 1}) {
      world.start(rank, seconds(0), [&, rank](Runtime& runtime, Store& store) {
        Rounds rounds(store, runtime, node(rank == 0 ? "a" : "b", 1, 2));
        while (auto outcome = rounds.join([] { return Meeting{"host", 1}; })) {
          if (rank != silent) seen.push_back(told(outcome));
          const TimePoint begin = runtime.now();
          rounds.wait_over();
          if (rank == silent) continue;
          const auto noticed = runtime.now() - begin - seconds(100);
          EXPECT_GE(noticed, seconds(10));
          EXPECT_LE(noticed, seconds(25));
          rounds.cancel();
        }
      });
    }
    world.direct([&](Runtime& runtime) {
      runtime.sleep_for(seconds(100));
      world.hang(silent);
    });
    world.run();
    EXPECT_EQ(seen.size(), 1u);
  }
}

TEST_F(RoundsTest, AFailureUsesARestartUpEverywhereAndTheLastOneEndsTheJob) {
  for (const int rank : {0, 1}) {
    RoundsOptions options = node(rank == 0 ? "a" : "b", 2, 2);
    options.max_restarts = 1;
    come(rank, 0, options, [this, rank](Rounds& rounds, Runtime& runtime) {
      while (true) {
        const auto outcome = join(rank, rounds);
        if (!outcome || !outcome->round) return;
        runtime.sleep_for(seconds(10 + rank));
        // Both fail: the second one because of the first.
        rounds.fail(7 + rank, "rank " + std::to_string(rank) + " exited");
      }
    });
  }
  run_until(100);
  EXPECT_EQ(told_[0], (Told{"0 s: round 1, node 0/2, ranks from 0/2, restarts 0",
                            "11 s: round 2, node 0/2, ranks from 0/2, restarts 1, rank 0 exited",
                            "22 s: ended 7: rank 0 exited"}));
  EXPECT_EQ(told_[1], (Told{"0 s: round 1, node 1/2, ranks from 1/2, restarts 0",
                            "11 s: round 2, node 1/2, ranks from 1/2, restarts 1, rank 0 exited",
                            "22 s: ended 7: rank 0 exited"}));
}

TEST_F(RoundsTest, AFailureWithALostNodeIsTheLoss) {
  RoundsOptions options = node("a", 1, 2);
  options.last_call = seconds(0);
  come(0, 0, options, [this](Rounds& rounds, Runtime& runtime) {
    join(0, rounds);
    rounds.wait_over();
    join(0, rounds);
    runtime.sleep_for(seconds(50));
    // Its machine lost power at 40 s; ours saw a closed connection long before the heartbeats.
    rounds.fail(1, "rank 0 lost rank 1");
    join(0, rounds);
  });
  options.host = "b";
  come(1, 10, options, follow(1));
  world_.direct([this](Runtime& runtime) {
    runtime.sleep_for(seconds(55));
    world_.hang(1);
  });
  run_until(100);
  ASSERT_EQ(told_[0].size(), 3u);
  EXPECT_EQ(told_[0][1], "10 s: round 2, node 0/2, ranks from 0/2, restarts 0, b (pid 7) joined");
  EXPECT_TRUE(
      told_[0][2].ends_with("s: round 3, node 0/1, ranks from 0/1, restarts 0, b (pid 7) "
                            "is lost: it missed 3 heartbeats, one each 5 s"))
      << told_[0][2];
}

TEST_F(RoundsTest, ARoundWaitsForWorkersOfTheOneBeforeToStop) {
  RoundsOptions options = node("a", 1, 2);
  options.last_call = seconds(1);
  come(0, 0, options, [this](Rounds& rounds, Runtime& runtime) {
    join(0, rounds);
    rounds.wait_over();
    tell(0, "stopping");
    runtime.sleep_for(seconds(12));
    join(0, rounds);
    rounds.wait_over();
  });
  options.host = "b";
  come(1, 10, options, follow(1));
  run_until(100);
  EXPECT_EQ(told_[0],
            (Told{"1 s: round 1, node 0/1, ranks from 0/1, restarts 0", "10 s: stopping",
                  "22 s: round 2, node 0/2, ranks from 0/2, restarts 0, b (pid 7) joined"}));
  EXPECT_EQ(told_[1],
            (Told{"22 s: round 2, node 1/2, ranks from 1/2, restarts 0, b (pid 7) joined"}));
}

TEST_F(RoundsTest, WhenAllAreDoneTheJobHasEndedAndItsIdStaysClosed) {
  for (const int rank : {0, 1}) {
    come(rank, 0, node("a", 2, 3), [this, rank](Rounds& rounds, Runtime& runtime) {
      join(rank, rounds);
      runtime.sleep_for(seconds(10 * (rank + 1)));
      rounds.succeed();
      const auto end = rounds.wait_over();
      ASSERT_TRUE(end);
      EXPECT_EQ(end->kind, RoundEnd::Kind::kSucceeded);
      join(rank, rounds);
    });
  }
  come(2, 45, node("b", 2, 3), follow(2));   // one is done: it waits for the other
  come(3, 500, node("c", 2, 3), follow(3));  // a job of the same name, later
  run_until(600);
  EXPECT_EQ(told_[0].back(), "51 s: succeeded");
  EXPECT_EQ(told_[1].back(), "51 s: succeeded");
  EXPECT_EQ(told_[2], Told{"51 s: succeeded"});
  EXPECT_EQ(told_[3], Told{"500 s: succeeded"});
}

TEST_F(RoundsTest, ANodeThatLeavesIsNoFailure) {
  RoundsOptions options = node("a", 1, 2);
  options.last_call = seconds(1);
  come(0, 0, options, follow(0));
  options.host = "b";
  come(1, 0, options, [this](Rounds& rounds, Runtime& runtime) {
    join(1, rounds);
    runtime.sleep_for(seconds(30));
    rounds.leave();
  });
  come(2, 40, options, follow(2));
  run_until(60);
  ASSERT_GE(told_[0].size(), 3u);
  EXPECT_EQ(told_[0][told_[0].size() - 2],
            "31 s: round 2, node 0/1, ranks from 0/1, restarts 0, b (pid 7) is lost: it left");
  EXPECT_EQ(told_[0].back(),
            "40 s: round 3, node 0/2, ranks from 0/2, restarts 0, b (pid 7) joined");
}

TEST_F(RoundsTest, AStaticJobEndsWithTheNodeItLost) {
  come(0, 0, static_node("a", 0, 2), follow(0));
  come(1, 0, static_node("b", 1, 2), follow(1));
  world_.direct([this](Runtime& runtime) {
    runtime.sleep_for(seconds(30));
    world_.crash(1);
  });
  run_until(60);
  EXPECT_EQ(told_[0].back(), "30 s: ended 3: b (pid 7) is lost: its process ended");
}

TEST_F(RoundsTest, AnotherTakesOverWhoFirstLookedAfterTheJoining) {
  for (const int rank : {0, 1, 2}) {
    come(rank, rank, node(std::string(1, static_cast<char>('a' + rank)), 2, 3), follow(rank));
  }
  world_.direct([this](Runtime& runtime) {
    runtime.sleep_for(std::chrono::milliseconds(1500));
    world_.crash(0);
  });
  run_until(100);
  EXPECT_EQ(told_[0], Told{});
  EXPECT_EQ(told_[1], Told{"32 s: round 1, node 0/2, ranks from 0/2, restarts 0"});
  EXPECT_EQ(told_[2], Told{"32 s: round 1, node 1/2, ranks from 1/2, restarts 0"});
}

TEST_F(RoundsTest, TooFewNodesAreAnErrorThatNamesWhoCame) {
  come(0, 0, node("a", 3, 3), follow(0));
  come(1, 0, node("b", 3, 3), follow(1));
  run_until(1000);
  EXPECT_EQ(told_[0],
            Told{"600 s: error: job \"none\", round 1: 2 of 3 nodes came within 600 s (a, "
                 "b); start the others with the same endpoint and --rdzv-id"});
}

TEST_F(RoundsTest, CancelEndsAWaitForOthers) {
  come(0, 0, node("a", 2, 2), [this](Rounds& rounds, Runtime& runtime) {
    const auto task = runtime.spawn("cancel", [&] {
      runtime.sleep_for(seconds(3));
      rounds.cancel();
    });
    join(0, rounds);
    task->join();
    join(0, rounds);
  });
  run_until(100);
  EXPECT_EQ(told_[0], (Told{"3 s: cancelled", "3 s: cancelled"}));
}

TEST_F(RoundsTest, WrongNodesAreRefusedAtOnceWithBothSidesNamed) {
  come(0, 0, static_node("a", 0, 3), follow(0));
  come(1, 1, static_node("b", 0, 3), follow(1));
  come(2, 1, static_node("c", 1, 2), follow(2));
  come(3, 1, node("d", 3, 3), follow(3));
  run_until(20);
  EXPECT_EQ(told_[1], Told{"1 s: refused: --node-rank 0 is given to two nodes of job \"none\": a "
                           "(pid 7), which came first, and b (pid 7); give every node a number of "
                           "its own"});
  EXPECT_EQ(told_[2], Told{"1 s: refused: job \"none\" has --nnodes 3:3, --max-restarts 0, "
                           "--rdzv-backend static on a, which came first, and --nnodes 2:2, "
                           "--max-restarts 0, --rdzv-backend static on c; start all nodes with the "
                           "same flags, or give each job an --rdzv-id"});
  EXPECT_TRUE(
      told_[3].at(0).ends_with("--rdzv-backend c10d on d; start all nodes with the same "
                               "flags, or give each job an --rdzv-id"));
}

TEST_F(RoundsTest, OneNodeTooManyIsRefusedAndOneInPlaceOfALostOneIsNot) {
  come(0, 0, node("a", 2, 2), follow(0));
  come(1, 0, node("b", 2, 2), follow(1));
  come(2, 5, node("c", 2, 2), follow(2));
  world_.direct([this](Runtime& runtime) {
    runtime.sleep_for(seconds(10));
    world_.crash(0);
  });
  come(3, 10, node("d", 2, 2), follow(3));
  run_until(20);
  EXPECT_EQ(told_[2],
            Told{"5 s: refused: job \"none\" has all of its 2 nodes (a, b); c (pid 7) is one too "
                 "many"});
  EXPECT_EQ(told_[3], Told{"10 s: round 2, node 1/2, ranks from 1/2, restarts 0, a (pid 7) is "
                           "lost: its process ended"});
}

TEST_F(RoundsTest, ANodeRankIsFreeAgainWhenItsNodeDiedBeforeTheJobBegan) {
  come(0, 0, static_node("a", 0, 2), follow(0));
  world_.direct([this](Runtime& runtime) {
    runtime.sleep_for(seconds(5));
    world_.crash(0);
  });
  come(1, 10, static_node("b", 0, 2), follow(1));
  come(2, 11, static_node("c", 1, 2), follow(2));
  run_until(20);
  EXPECT_EQ(told_[1], Told{"11 s: round 1, node 0/2, ranks from 0/2, restarts 0"});
}

TEST_F(RoundsTest, AMasterThatOnlyItsOwnHostReachesIsRefused) {
  for (const int rank : {0, 1}) {
    come(rank, 0, node(rank == 0 ? "a" : "b", 2, 2), [this, rank](Rounds& rounds, Runtime&) {
      tell(rank, told(rounds.join([] { return Meeting{"127.0.0.1", 1}; })));
    });
  }
  run_until(20);
  EXPECT_EQ(told_[1],
            Told{"0 s: ended 2: ranks would meet at 127.0.0.1 on a, which b cannot reach; "
                 "give a an address that other hosts know"});
}

// Messages until all have joined, for so many nodes that start together.
std::int64_t messages_to_meet(int nodes) {
  StoreWorld world(nodes);
  std::int64_t messages = 0;
  for (int rank = 0; rank < nodes; ++rank) {
    world.start(rank, seconds(0), [&](Runtime& runtime, Store& inner) {
      HookedStore store(inner, [&](TimePoint) { ++messages; });
      Rounds rounds(store, runtime, node("host", nodes, nodes));
      EXPECT_EQ(rounds.join([] { return Meeting{"host", 1}; })->round->group_size(), nodes);
    });
  }
  world.run();
  return messages;
}

TEST(RoundsMessages, GrowWithTheNumberOfNodesOnly) {
  // 11 a node, and those that look at all others: the first and the last.
  for (const int nodes : {64, 4096}) EXPECT_EQ(messages_to_meet(nodes), 11 * nodes + 6);
}

}  // namespace
}  // namespace ddproof
