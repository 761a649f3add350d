// Sub-groups, and the life of a group: made again, aborted, left, failed.
#include <atomic>
#include <deque>
#include <numeric>
#include <stdexcept>

#include "tests/contract/contract.h"

namespace ddproof::contract {
namespace {

class Groups : public Contract {};
DDPROOF_CONTRACT(Groups);

TEST_P(Groups, SplitOrdersByKeyThenRank) {
  for (int size : world_sizes()) {
    run(size, [](RankContext& rank) {
      ProcessGroup& world = rank.group;
      // Even and odd ranks, in descending order.
      const auto half = world.split(world.rank() % 2, -world.rank());
      ASSERT_NE(half, nullptr);
      const int members = (world.size() + 1 - world.rank() % 2) / 2;
      EXPECT_EQ(half->size(), members);
      EXPECT_EQ(half->rank(), members - 1 - world.rank() / 2);
      std::vector<int> data{world.rank()};
      half->all_reduce(buffer(data))->wait();
      int expected = 0;
      for (int r = world.rank() % 2; r < world.size(); r += 2) expected += r;
      EXPECT_EQ(data[0], expected);
      world.barrier()->wait();
    });
  }
}

TEST_P(Groups, ANegativeColorJoinsNoGroup) {
  run(world_sizes().back(), [](RankContext& rank) {
    const auto group = rank.group.split(rank.group.rank() == 0 ? -1 : 0, 0);
    EXPECT_EQ(group == nullptr, rank.group.rank() == 0);
    if (group) group->barrier()->wait();
  });
}

TEST_P(Groups, SubGroupsSplitAgainAndWorkSideBySide) {
  if (has_one_rank_only()) GTEST_SKIP();
  run(8, [](RankContext& rank) {
    const auto half = rank.group.split(rank.group.rank() / 4, 0);
    const auto pair = half->split(half->rank() / 2, 0);
    ASSERT_EQ(pair->size(), 2);
    std::vector<int> in_half{1}, in_pair{1}, in_world{1};
    const auto a = half->all_reduce(buffer(in_half));
    const auto b = pair->all_reduce(buffer(in_pair));
    const auto c = rank.group.all_reduce(buffer(in_world));
    c->wait(), b->wait(), a->wait();
    EXPECT_EQ(in_half[0], 4);
    EXPECT_EQ(in_pair[0], 2);
    EXPECT_EQ(in_world[0], 8);
  });
}

// Calls on one group, with values that name the group, the round and the rank that gave them.
class CallsOn {
 public:
  // `members`: the world ranks of the group, in its order.
  CallsOn(ProcessGroup& group, int number, std::vector<int> members)
      : group_(group), number_(number), members_(std::move(members)) {}

  void submit(int round, int world_rank) {
    const int root = round % group_.size();
    Round& calls = rounds_.emplace_back();
    calls.sum = calls.rooted = calls.mine = {value(round, world_rank)};
    calls.all.resize(members_.size());
    calls.works = {group_.all_reduce(buffer(calls.sum)),
                   group_.broadcast(buffer(calls.rooted), root),
                   group_.all_gather(buffer(calls.mine), buffer(calls.all))};
  }
  void wait() {
    for (const Round& calls : rounds_) {
      for (const WorkPtr& work : calls.works) work->wait();
    }
  }
  void check() const {
    for (int round = 0; round < static_cast<int>(rounds_.size()); ++round) {
      const Round& calls = rounds_[static_cast<std::size_t>(round)];
      std::vector<int> all;
      for (const int member : members_) all.push_back(value(round, member));
      EXPECT_EQ(calls.all, all) << number_;
      EXPECT_EQ(calls.rooted[0], all[static_cast<std::size_t>(round) % all.size()]) << number_;
      EXPECT_EQ(calls.sum[0], std::accumulate(all.begin(), all.end(), 0)) << number_;
    }
  }

 private:
  struct Round {
    std::vector<int> sum, rooted, mine, all;
    std::vector<WorkPtr> works;
  };

  int value(int round, int rank) const { return 10'000 * (number_ + 1) + 100 * round + rank; }

  ProcessGroup& group_;
  int number_;
  std::vector<int> members_;
  std::deque<Round> rounds_;  // buffers stay where they are
};

// Each group has an order of its own; between groups every rank has another one.
TEST_P(Groups, CallsOnGroupsThatOverlapAreMadeAndAwaitedInAnyOrder) {
  if (has_one_rank_only()) GTEST_SKIP();
  constexpr int kRows = 2, kColumns = 3, kRounds = 6;
  constexpr int kOrders[kRounds][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const bool checked : {true, false}) {
    const auto body = [&](RankContext& rank) {
      const int mine = rank.group.rank();
      const int first_of_row = mine - mine % kColumns, in_row = mine % kColumns;
      const auto row = rank.group.split(mine / kColumns, 0);
      const auto column = rank.group.split(in_row, 0);
      std::deque<CallsOn> calls;
      calls.emplace_back(rank.group, 0, std::vector{0, 1, 2, 3, 4, 5});
      calls.emplace_back(*row, 1, std::vector{first_of_row, first_of_row + 1, first_of_row + 2});
      calls.emplace_back(*column, 2, std::vector{in_row, in_row + kColumns});
      for (int round = 0; round < kRounds; ++round) {
        for (const int i : kOrders[(mine + round) % kRounds]) calls[i].submit(round, mine);
      }
      for (const int i : kOrders[(5 * mine + 3) % kRounds]) calls[i].wait();
      for (const CallsOn& group : calls) group.check();
      rank.group.barrier()->wait();
    };
    run(kRows * kColumns, body, checked);
  }
}

// Rank 3 makes the world's call only after the others are done with theirs on two other groups.
TEST_P(Groups, ACallThatWaitsForARankHoldsUpNoOtherGroup) {
  if (has_one_rank_only()) GTEST_SKIP();
  for (const bool checked : {true, false}) {
    const auto body = [](RankContext& rank) {
      const bool is_late = rank.group.rank() == 3;
      const auto everybody = rank.group.split(0, 0);
      const auto others = rank.group.split(is_late ? -1 : 0, 0);
      std::vector<int> of_world{1}, of_others{1};
      const auto call_world = [&] { return rank.group.all_reduce(buffer(of_world)); };
      WorkPtr work;
      if (!is_late) {
        work = call_world();
        others->all_reduce(buffer(of_others))->wait();
        EXPECT_EQ(of_others[0], 3);
      }
      everybody->barrier()->wait();
      if (is_late) work = call_world();
      work->wait();
      EXPECT_EQ(of_world[0], 4);
    };
    run(4, body, checked);
  }
}

// P34: made three times over.
TEST_P(Groups, TheSameWorldCanBeMadeAgain) {
  for (int i = 0; i < 3; ++i) {
    run(world_sizes().back(), [](RankContext& rank) { rank.group.barrier()->wait(); });
  }
}

TEST_P(Groups, AWorldNeedsARank) {
  for (int size : {0, -1}) EXPECT_THROW(run(size, [](RankContext&) {}), ConfigError);
}

TEST_P(Groups, CallsAfterAbortFail) {
  run(1, [](RankContext& rank) {
    rank.group.abort();
    rank.group.abort();
    std::vector<int> data(2);
    const CommError error = comm_error_of([&] { rank.group.all_reduce(buffer(data))->wait(); });
    EXPECT_EQ(error.kind(), CommErrorKind::kAborted);
  });
}

class Failures : public PeerContract {};
DDPROOF_CONTRACT(Failures);

TEST_P(Failures, AbortEndsThisRanksPendingCallAndThePeersCalls) {
  for (bool checked : {true, false}) {
    const auto body = [](RankContext& rank) {
      if (rank.group.rank() == 2) {
        std::vector<int> data(2);
        const WorkPtr pending = rank.group.recv(buffer(data), 0);  // which sends nothing
        rank.group.abort();
        EXPECT_EQ(comm_error_of([&] { pending->wait(); }).kind(), CommErrorKind::kAborted);
        return;
      }
      const CommError error = comm_error_of([&] { rank.group.barrier()->wait(); });
      EXPECT_EQ(error.kind(), CommErrorKind::kPeerLost) << error.what();
      EXPECT_EQ(error.culprits(), std::vector{2}) << error.what();
    };
    run(4, body, checked);
  }
}

TEST_P(Failures, ARankThatThrowsEndsThePeersCalls) {
  for (bool checked : {true, false}) {
    std::atomic<int> lost = 0;
    const auto body = [&](RankContext& rank) {
      rank.group.barrier()->wait();
      if (rank.group.rank() == 1) throw std::out_of_range("a bug in the trainer");
      try {
        rank.group.barrier()->wait();
      } catch (const CommError& error) {
        EXPECT_EQ(error.kind(), CommErrorKind::kPeerLost) << error.what();
        EXPECT_EQ(error.culprits(), std::vector{1}) << error.what();
        ++lost;
        throw;
      }
    };
    EXPECT_THROW(run(4, body, checked), std::out_of_range);  // the cause, not what followed
    EXPECT_EQ(lost, 3);
  }
}

TEST_P(Failures, WhatARankThrowsComesOutWhateverItsType) {
  EXPECT_THROW(run(2,
                   [](RankContext& rank) {
                     if (rank.group.rank() == 1) throw 42;
                   }),
               int);
}

// Returns when `count` has reached `target`: other ranks have got so far.
void await(RankContext& rank, const std::atomic<int>& count, int target) {
  while (count < target) rank.runtime.sleep_for(std::chrono::milliseconds(1));
}

TEST_P(Failures, ARankThatLeavesIsNamed) {
  // A simulator sees that nobody can go on; others see that the rank has gone.
  const bool tells_deadlocks = make_tested_backend(GetParam())->capabilities().tells_deadlocks;
  const auto kind = tells_deadlocks ? CommErrorKind::kDeadlock : CommErrorKind::kPeerLost;
  const std::string named =
      tells_deadlocks ? "rank 3 has returned" : "barrier #1 at t.cc:5: rank 3 is lost";
  std::atomic<int> lost = 0;
  const auto body = [&](RankContext& rank) {
    if (rank.group.rank() == 3) return;
    const CommError error = comm_error_of([&] {
      // Longer than this test may take: only the broken connections may end the wait.
      rank.group.barrier({.timeout = std::chrono::hours(1)}, {"t.cc", 5, ""})->wait();
    });
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_EQ(error.culprits(), std::vector{3}) << error.what();
    EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    ++lost;
    await(rank, lost, 3);  // a rank that fails ends its peers' waits without leaving
  };
  run(4, body);
  EXPECT_EQ(lost, 3);
}

// Ranks 1 and 3 come only after the others have given up.
TEST_P(Failures, MonitoredBarrierNamesTheMissingRanks) {
  for (bool checked : {true, false}) {
    for (bool all : {true, false}) {
      const std::vector<int> expected = all ? std::vector{1, 3} : std::vector{1};
      std::atomic<int> gave_up = 0;
      const auto body = [&](RankContext& rank) {
        const bool late = rank.group.rank() % 2 == 1;
        if (late) await(rank, gave_up, 2);
        const CommError error = comm_error_of([&] {
          rank.group.monitored_barrier(all, {.timeout = std::chrono::milliseconds(500)})->wait();
        });
        ++gave_up;
        EXPECT_EQ(error.kind(), CommErrorKind::kTimeout) << error.what();
        if (!late) {
          EXPECT_EQ(error.culprits(), expected) << error.what();
        }
        await(rank, gave_up, 4);  // nobody leaves before the late ones have asked
      };
      run(4, body, checked);
    }
  }
}

TEST_P(Failures, ACallThatMeetsItsTimeoutNamesWhoDidNotCome) {
  std::atomic<int> gave_up = 0;
  run(4, [&](RankContext& rank) {
    if (rank.group.rank() == 2) await(rank, gave_up, 3);
    const CommError error = comm_error_of([&] {
      rank.group.barrier({.timeout = std::chrono::milliseconds(500)}, {"t.cc", 9, ""})->wait();
    });
    ++gave_up;
    EXPECT_EQ(error.kind(), CommErrorKind::kTimeout) << error.what();
    EXPECT_EQ(error.culprits(), std::vector{2}) << error.what();
    EXPECT_EQ(comm_error_of([&] { rank.group.barrier()->wait(); }).kind(), CommErrorKind::kTimeout);
  });
}

}  // namespace
}  // namespace ddproof::contract
