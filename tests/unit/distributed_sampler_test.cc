// Facts about one sampler, by example; every PITFALLS row of the sampler that is about the lists.
#include "reference/data/distributed_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "backends/api/error.h"
#include "reference/data/randperm.h"

namespace ddproof {
namespace {

using Indices = std::vector<std::int64_t>;

Indices list_of(SamplerOptions options, int rank, std::int64_t epoch = 0,
                std::int64_t position = 0) {
  options.rank = rank;
  DistributedSampler sampler(options);
  sampler.set_epoch(epoch);
  return sampler.indices(position).to_vector();
}

std::vector<Indices> all_ranks(const SamplerOptions& options, std::int64_t epoch = 0,
                               std::int64_t position = 0) {
  std::vector<Indices> lists;
  for (int rank = 0; rank < options.replicas; ++rank) {
    lists.push_back(list_of(options, rank, epoch, position));
  }
  return lists;
}

std::map<std::int64_t, int> copies(const std::vector<Indices>& lists) {
  std::map<std::int64_t, int> counts;
  for (const Indices& list : lists) {
    for (const std::int64_t index : list) ++counts[index];
  }
  return counts;
}

std::string error_of(const SamplerOptions& options) {
  try {
    DistributedSampler sampler(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Randperm, IsPyTorchsPermutation) {
  EXPECT_EQ(randperm<std::int64_t>(10, 0), (Indices{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
  EXPECT_EQ(randperm<std::int64_t>(10, 1), (Indices{5, 6, 1, 2, 0, 8, 9, 3, 7, 4}));
  EXPECT_EQ(randperm<std::int64_t>(2, 0), (Indices{0, 1}));
}

TEST(Randperm, TakesTheSeedModulo32Bits) {
  EXPECT_EQ(randperm<std::int64_t>(10, std::uint64_t{1} << 32), randperm<std::int64_t>(10, 0));
  EXPECT_EQ(randperm<std::int64_t>(10, static_cast<std::uint64_t>(-1)),
            (Indices{1, 4, 6, 2, 0, 5, 8, 7, 9, 3}));
}

TEST(Randperm, DrawsNothingForOneElement) {
  std::mt19937 generator(7);
  const std::mt19937 before = generator;
  EXPECT_EQ(randperm<std::int64_t>(1, generator), (Indices{0}));
  EXPECT_EQ(randperm<std::int64_t>(0, generator), Indices{});
  EXPECT_TRUE(generator == before);
}

TEST(Randperm, NarrowAndWideIndicesAgree) {
  const auto narrow = randperm<std::uint32_t>(1000, 5);
  EXPECT_EQ(Indices(narrow.begin(), narrow.end()), randperm<std::int64_t>(1000, 5));
}

// The branch of lengths from 214,748,364 on, written out once more from its definition.
TEST(Randperm, InsideOutShuffleFollowsItsDefinition) {
  for (const std::int64_t n : {0, 1, 2, 3, 10, 257}) {
    std::mt19937 generator(42);
    Indices expected(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t high = generator();
      const std::uint64_t low = generator();
      const auto z =
          static_cast<std::size_t>(((high << 32) | low) % static_cast<std::uint64_t>(i + 1));
      expected[static_cast<std::size_t>(i)] = i;
      expected[static_cast<std::size_t>(i)] = expected[z];
      expected[z] = i;
    }
    std::mt19937 again(42);
    EXPECT_EQ(internal::inside_out_shuffle<std::int64_t>(n, again), expected) << n;
  }
}

TEST(Randperm, SwitchesBranchesWherePyTorchDoes) { EXPECT_EQ(kRandpermWideLength, 214748364); }

TEST(DistributedSampler, PadsByWrappingToTheFront) {
  EXPECT_EQ(all_ranks({.length = 10, .replicas = 3}),
            (std::vector<Indices>{{4, 5, 0, 2}, {1, 3, 8, 4}, {7, 9, 6, 1}}));
  EXPECT_EQ(all_ranks({.length = 10, .replicas = 3, .shuffle = false}),
            (std::vector<Indices>{{0, 3, 6, 9}, {1, 4, 7, 0}, {2, 5, 8, 1}}));
}

TEST(DistributedSampler, DropLastCutsTheTailOfTheOrder) {
  EXPECT_EQ(all_ranks({.length = 10, .replicas = 3, .tail = Tail::kDrop}),
            (std::vector<Indices>{{4, 5, 0}, {1, 3, 8}, {7, 9, 6}}));
  EXPECT_EQ(all_ranks({.length = 2, .replicas = 7, .tail = Tail::kDrop}), std::vector<Indices>(7));
}

// pytorch#45324: padding that copies the list only once fails from twice as many ranks on.
TEST(DistributedSampler, WrapsAsOftenAsNeededForMoreRanksThanSamples) {
  const auto lists = all_ranks({.length = 4, .replicas = 9});
  for (const Indices& list : lists) EXPECT_EQ(list.size(), 1u);
  const auto counts = copies(lists);
  EXPECT_EQ(counts.size(), 4u);
  for (const auto& [index, count] : counts) EXPECT_LE(count, 3) << index;
}

// pytorch#49172: the edge lies where the padding passes the length.
TEST(DistributedSampler, PadsAtTheEdgeWherePaddingPassesTheLength) {
  for (const int replicas : {5, 6, 7}) {
    for (const Indices& list : all_ranks({.length = 3, .replicas = replicas})) {
      EXPECT_EQ(list.size(), 1u) << replicas;
    }
  }
  EXPECT_EQ(all_ranks({.length = 3, .replicas = 7}),
            (std::vector<Indices>{{2}, {0}, {1}, {2}, {0}, {1}, {2}}));
}

// torch's ElasticDistributedSampler asserts here.
TEST(DistributedSampler, ShortTailsArePaddedToo) {
  for (const Indices& list : all_ranks({.length = 10, .replicas = 4}, 0, 9)) {
    EXPECT_EQ(list.size(), 1u);
  }
}

TEST(DistributedSampler, RefusesAPositionPastTheLastSample) {
  DistributedSampler sampler({.length = 10, .replicas = 4});
  try {
    sampler.indices(10);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "sampler position 10: expected 0 to 9 in a data set of 10 samples; the epoch after "
        "its last sample begins at position 0");
  }
  EXPECT_THROW(sampler.indices(-1), ConfigError);
  EXPECT_EQ(sampler.remaining(10), 0);
}

// pytorch#25162: evaluation sees copies; the raw sizes depend on the number of ranks.
TEST(DistributedSampler, SizesCountTheCopies) {
  EXPECT_EQ(DistributedSampler({.length = 21, .replicas = 1}).total_size(), 21);
  EXPECT_EQ(DistributedSampler({.length = 21, .replicas = 2}).total_size(), 22);
  EXPECT_EQ(DistributedSampler({.length = 21, .replicas = 4}).total_size(), 24);
  EXPECT_EQ(DistributedSampler({.length = 1003, .replicas = 4}).total_size(), 1004);
}

// pytorch#31771: without set_epoch every epoch has the same order.
TEST(DistributedSampler, SetEpochGivesThreeOrdersInThreeEpochs) {
  DistributedSampler sampler({.length = 22});
  std::set<Indices> orders;
  for (int epoch = 0; epoch < 3; ++epoch) {
    sampler.set_epoch(epoch);
    orders.insert(sampler.indices().to_vector());
  }
  EXPECT_EQ(orders.size(), 3u);
}

std::vector<std::string> warnings_of_three_epochs(SamplerOptions options, bool sets_epoch) {
  std::vector<std::string> warnings;
  options.on_warning = [&warnings](const std::string& text) { warnings.push_back(text); };
  DistributedSampler sampler(options);
  for (int epoch = 0; epoch < 3; ++epoch) {
    if (sets_epoch) sampler.set_epoch(epoch);
    sampler.indices();
    sampler.indices(options.length / 2);
  }
  return warnings;
}

TEST(DistributedSampler, WarnsWhenEpochsRepeatForWantOfSetEpoch) {
  const std::string warning =
      "sampler: epoch 0 is begun again without set_epoch(), so its order repeats; call set_epoch() "
      "before each epoch";
  EXPECT_EQ(warnings_of_three_epochs({.length = 22}, false),
            (std::vector<std::string>{warning, warning}));
  EXPECT_TRUE(warnings_of_three_epochs({.length = 22}, true).empty());
  EXPECT_TRUE(warnings_of_three_epochs({.length = 22, .shuffle = false}, false).empty());
}

TEST(DistributedSampler, OnlyTheSumOfSeedAndEpochMatters) {
  EXPECT_EQ(list_of({.length = 50, .seed = 3}, 0, 4), list_of({.length = 50, .seed = 4}, 0, 3));
}

// pytorch#196090: the number of ranks is checked on its own, before the rank.
TEST(DistributedSampler, BadRanksAndReplicasHaveDistinctErrors) {
  EXPECT_EQ(error_of({.length = 3, .replicas = 0, .rank = 0}),
            "sampler replicas 0: expected at least 1; pass the world size");
  EXPECT_EQ(error_of({.length = 3, .replicas = -1, .rank = 0}),
            "sampler replicas -1: expected at least 1; pass the world size");
  EXPECT_EQ(error_of({.length = 3, .replicas = 3, .rank = 3}),
            "sampler rank 3: expected 0 to 2 (3 replicas)");
  EXPECT_EQ(error_of({.length = 3, .replicas = 3, .rank = -1}),
            "sampler rank -1: expected 0 to 2 (3 replicas)");
}

TEST(DistributedSampler, RefusesLengthsOutOfRange) {
  EXPECT_EQ(error_of({.length = -1}),
            "sampler length -1: expected 0 to 1099511627776; pass the number of samples");
  EXPECT_NE(error_of({.length = std::numeric_limits<std::int64_t>::max()}), "");
}

TEST(DistributedSampler, RefusesANegativeEpoch) {
  DistributedSampler sampler({.length = 3});
  EXPECT_THROW(sampler.set_epoch(-1), ConfigError);
}

TEST(DistributedSampler, AnEmptyDataSetGivesEmptyLists) {
  for (const Tail tail : {Tail::kPad, Tail::kDrop, Tail::kKeep}) {
    EXPECT_EQ(all_ranks({.length = 0, .replicas = 3, .tail = tail}), std::vector<Indices>(3));
  }
}

// accelerate#4071: 125 steps an epoch, saved at step 200, is position 75 of epoch 1.
TEST(DistributedSampler, ResumingInMidEpochContinuesTheStream) {
  for (const int replicas : {1, 4}) {
    const SamplerOptions options{.length = 1003, .replicas = replicas};
    for (int rank = 0; rank < replicas; ++rank) {
      const Indices whole = list_of(options, rank, 1);
      const Indices rest = list_of(options, rank, 1, std::int64_t{75} * replicas);
      EXPECT_EQ(rest, Indices(whole.begin() + 75, whole.end()));
    }
  }
}

// transgenic#59: skipping by count in a different shuffle loses samples.
TEST(DistributedSampler, EverySampleIsDrawnOnceAcrossARestart) {
  const SamplerOptions options{.length = 64, .replicas = 2};
  std::vector<Indices> parts;
  for (int rank = 0; rank < 2; ++rank) {
    const Indices whole = list_of(options, rank);
    parts.emplace_back(whole.begin(), whole.begin() + 10);
    parts.push_back(list_of(options, rank, 0, 20));
  }
  const auto counts = copies(parts);
  EXPECT_EQ(counts.size(), 64u);
  for (const auto& [index, count] : counts) EXPECT_EQ(count, 1) << index;
}

TEST(DistributedSampler, TheRestOfAnEpochMayBeSplitOverAnotherNumberOfRanks) {
  std::vector<Indices> parts;
  for (const Indices& whole : all_ranks({.length = 60, .replicas = 4})) {
    parts.emplace_back(whole.begin(), whole.begin() + 5);
  }
  for (const Indices& rest : all_ranks({.length = 60, .replicas = 5}, 0, 20)) parts.push_back(rest);
  const auto counts = copies(parts);
  EXPECT_EQ(counts.size(), 60u);
  for (const auto& [index, count] : counts) EXPECT_EQ(count, 1) << index;
}

// VeOmni#853: a "just resumed" latch makes the next epoch empty.
TEST(DistributedSampler, TheEpochAfterARestoreAtTheEndIsWhole) {
  DistributedSampler sampler({.length = 8});
  EXPECT_EQ(sampler.remaining(8), 0);
  sampler.set_epoch(1);
  EXPECT_EQ(sampler.indices().size(), 8);
}

// lhotse#695 and datasets#5360: nothing is lost without drop_last, nothing is read by every rank.
TEST(DistributedSampler, KeepsTheTailAndSplitsTheWhole) {
  EXPECT_EQ(copies(all_ranks({.length = 7, .replicas = 2})).size(), 7u);
  const auto lists = all_ranks({.length = 6, .replicas = 2});
  EXPECT_EQ(lists[0].size(), 3u);
  EXPECT_EQ(copies(lists).size(), 6u);
}

TEST(IndexList, SharesAnOrderThatStartsOver) {
  const auto order = std::make_shared<const IndexList::Order>(IndexList::Narrow{7, 5, 3});
  const IndexList list(order, 3, 1, 2, 4);  // places 1, 3, 5, 7
  EXPECT_EQ(list.to_vector(), (Indices{5, 7, 3, 5}));
  EXPECT_EQ(list.compacted().to_vector(), list.to_vector());
  EXPECT_EQ(IndexList(nullptr, 3, 1, 2, 4).to_vector(), (Indices{1, 0, 2, 1}));
  EXPECT_EQ(IndexList().size(), 0);
}

TEST(DistributedSampler, GivesTheListsOfAllRanksAtOnce) {
  for (const Tail tail : {Tail::kPad, Tail::kDrop, Tail::kKeep}) {
    for (const bool shuffle : {true, false}) {
      for (const std::int64_t length : {3, 60, 61}) {
        const SamplerOptions options{
            .length = length, .replicas = 7, .shuffle = shuffle, .tail = tail};
        for (const std::int64_t position : {0, 2}) {
          DistributedSampler sampler(options);
          sampler.set_epoch(1);
          std::vector<Indices> lists;
          for (const IndexList& list : sampler.indices_of_all_ranks(position)) {
            lists.push_back(list.to_vector());
          }
          EXPECT_EQ(lists, all_ranks(options, 1, position)) << length << name_of(tail);
        }
      }
    }
  }
}

TEST(DistributedSampler, OneCallForAllRanksIsOneEpoch) {
  std::vector<std::string> warnings;
  DistributedSampler sampler(
      {.length = 5, .replicas = 3, .on_warning = [&](const std::string& text) {
         warnings.push_back(text);
       }});
  sampler.indices_of_all_ranks();
  EXPECT_TRUE(warnings.empty());
  sampler.indices_of_all_ranks();
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_THROW(sampler.indices_of_all_ranks(5), ConfigError);
}

// A rank's own share of every tail, and what all of them have together.
TEST(DistributedSampler, KeepsTheTailAsItIsForEvaluation) {
  const SamplerOptions options{.length = 7, .replicas = 3, .shuffle = false, .tail = Tail::kKeep};
  EXPECT_EQ(all_ranks(options), (std::vector<Indices>{{0, 3, 6}, {1, 4}, {2, 5}}));
  EXPECT_EQ(DistributedSampler(options).total_size(), 7);
  EXPECT_EQ(all_ranks({.length = 2, .replicas = 4, .tail = Tail::kKeep}),
            (std::vector<Indices>{{0}, {1}, {}, {}}));
}

// P4: 21 samples on 1, 2 and 4 ranks.
TEST(DistributedSampler, KeepingTheTailMakesNoCopies) {
  for (const int replicas : {1, 2, 4}) {
    const auto counts =
        copies(all_ranks({.length = 21, .replicas = replicas, .tail = Tail::kKeep}));
    EXPECT_EQ(counts.size(), 21u) << replicas;
    for (const auto& [index, count] : counts) EXPECT_EQ(count, 1) << index;
  }
}

// Three restarts, each on another number of ranks; the last round of all is padded.
TEST(DistributedSampler, AnEpochSurvivesRestartsOnOtherNumbersOfRanks) {
  struct Run {
    int replicas;
    std::int64_t steps;  // of one sample a rank
  };
  std::vector<Indices> parts;
  std::int64_t position = 0;
  for (const auto& [replicas, steps] : {Run{4, 3}, Run{3, 5}, Run{5, 2}}) {
    for (Indices rest : all_ranks({.length = 50, .replicas = replicas, .seed = 9}, 2, position)) {
      rest.resize(static_cast<std::size_t>(steps));
      parts.push_back(std::move(rest));
    }
    position += steps * replicas;
  }
  ASSERT_EQ(position, 37);
  for (const Indices& rest : all_ranks({.length = 50, .replicas = 4, .seed = 9}, 2, position)) {
    EXPECT_EQ(rest.size(), 4u);  // 13 samples and 3 copies
    parts.push_back(rest);
  }
  const auto counts = copies(parts);
  EXPECT_EQ(counts.size(), 50u);
  const Indices front = list_of({.length = 50, .seed = 9}, 0, 2);
  for (const auto& [index, count] : counts) {
    const bool is_copied = index == front[0] || index == front[1] || index == front[2];
    EXPECT_EQ(count, is_copied ? 2 : 1) << index;
  }
}

}  // namespace
}  // namespace ddproof
