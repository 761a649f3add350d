// Few bytes of min and max on a number of ranks with a large odd part: along a tree.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/sim_collectives.h"

namespace ddproof {
namespace {

// Rank r's values: the largest and the smallest of each element are on ranks of their own.
Values values_of(int rank, int ranks, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto turned = (rank + static_cast<int>(i)) % ranks;
    values[i] = static_cast<float>(turned) - static_cast<float>(ranks) / 2;
  }
  return values;
}

struct TreeOutcome {
  std::vector<Values> results;
  std::uint64_t messages = 0;
};

TreeOutcome all_reduce(int ranks, ReduceOp op, std::size_t count) {
  TreeOutcome outcome{std::vector<Values>(static_cast<std::size_t>(ranks)), 0};
  SimWorldOptions options;
  options.world.world_size = ranks;
  const sim::Report report = run_sim_world(options, [&](RankContext& rank) {
    const int mine = rank.group.rank();
    outcome.results[static_cast<std::size_t>(mine)] =
        call(rank, Op::kAllReduce, values_of(mine, ranks, count), 0, op);
  });
  rethrow(report);
  outcome.messages = report.messages;
  return outcome;
}

std::uint64_t messages_of_tree(int ranks) { return 2 * (static_cast<std::uint64_t>(ranks) - 1); }

TEST(SimTree, GivesEveryRankTheMinimumAndTheMaximumOfAll) {
  for (const int ranks : {17, 19, 23, 31, 34, 67, 76}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{256}}) {
      for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
        Values expected = values_of(0, ranks, count);
        for (int rank = 1; rank < ranks; ++rank) {
          const Values values = values_of(rank, ranks, count);
          for (std::size_t i = 0; i < count; ++i) {
            expected[i] = op == ReduceOp::kMin ? std::min(expected[i], values[i])
                                               : std::max(expected[i], values[i]);
          }
        }
        const TreeOutcome outcome = all_reduce(ranks, op, count);
        for (const Values& result : outcome.results) ASSERT_EQ(result, expected) << ranks;
        EXPECT_EQ(outcome.messages, messages_of_tree(ranks)) << ranks;
      }
    }
  }
}

TEST(SimTree, LetsAThousandAndTwoRanksCompareTheirCallsQuickly) {
  constexpr int kRanks = 1002;  // 2 x 3 x 167: all-to-all of 501 ranks by Gloo's bcube
  EXPECT_EQ(all_reduce(kRanks, ReduceOp::kMax, 4).messages, messages_of_tree(kRanks));
}

TEST(SimTree, IsNotForSumsNorForManyBytes) {
  constexpr int kRanks = 17;
  const std::uint64_t fewest = messages_of_tree(kRanks);
  EXPECT_GT(all_reduce(kRanks, ReduceOp::kSum, 4).messages, fewest);
  EXPECT_GT(all_reduce(kRanks, ReduceOp::kMax, 257).messages, fewest);
}

}  // namespace
}  // namespace ddproof
