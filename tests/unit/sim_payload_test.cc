// The payload modes: less data, the same run.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/checked/checked_process_group.h"
#include "backends/sim/hashes.h"
#include "tests/unit/sim_collectives.h"

namespace ddproof {
namespace {

constexpr PayloadMode kModes[] = {PayloadMode::kReal, PayloadMode::kHashed, PayloadMode::kSizeOnly};
constexpr std::size_t kCount = 401;  // above what steers

SimWorldOptions options_of(int ranks, PayloadMode payload) {
  SimWorldOptions options;
  options.world.world_size = ranks;
  options.world.placement = place_in_blocks(ranks, 3);
  options.payload = payload;
  return options;
}

struct PayloadOutcome {
  sim::Report report;
  std::vector<Values> results;
};

PayloadOutcome run(const SimWorldOptions& options, Op op, std::size_t count, int salted_rank = -1) {
  PayloadOutcome outcome;
  outcome.results.resize(static_cast<std::size_t>(options.world.world_size));
  outcome.report = run_sim_world(options, [&](RankContext& rank) {
    const int place = rank.group.rank();
    Values mine = input_of(place, count);
    if (place == salted_rank) mine.back() += 1;
    outcome.results[static_cast<std::size_t>(place)] = call(rank, op, mine);
  });
  rethrow(outcome.report);
  return outcome;
}

std::uint64_t hash_in(const Values& values) {
  std::uint64_t hash = 0;
  std::memcpy(&hash, values.data(), sizeof hash);
  return hash;
}

TEST(SimPayload, EveryModeIsTheSameRun) {
  for (const Op op : kCollectives) {
    for (const int ranks : {1, 2, 3, 4, 7, 8, 12}) {
      for (const std::size_t count : {std::size_t{1}, kCount}) {
        std::set<std::uint64_t> digests;
        for (const PayloadMode mode : kModes) {
          digests.insert(run(options_of(ranks, mode), op, count).report.digest);
        }
        EXPECT_EQ(digests.size(), 1u) << to_string(op) << " of " << ranks << ", " << count;
      }
    }
  }
}

TEST(SimPayload, WhatSteersIsRealInEveryMode) {
  for (const PayloadMode mode : kModes) {
    SimWorldOptions options = options_of(100, mode);
    rethrow(run_sim_world(options, [&](RankContext& rank) {
      EXPECT_EQ(call(rank, Op::kAllReduce, Values(256, 1)), Values(256, 100));
      const int color = rank.group.rank() % 3;
      const auto part = rank.group.split(color, -rank.group.rank());
      EXPECT_EQ(part->size(), color == 0 ? 34 : 33);
      part->monitored_barrier()->wait();
    }));
  }
}

TEST(SimPayload, MismatchesAreFoundInEveryMode) {
  for (const PayloadMode mode : kModes) {
    const sim::Report report = run_sim_world(options_of(9, mode), [](RankContext& rank) {
      CheckedProcessGroup checked(rank.group, rank.runtime);
      Values data(rank.group.rank() == 4 ? kCount + 1 : kCount);
      checked.all_reduce(Buffer::of(data))->wait();
    });
    for (const sim::RankReport& rank : report.ranks) {
      try {
        std::rethrow_exception(rank.error);
      } catch (const CommError& error) {
        EXPECT_EQ(error.kind(), CommErrorKind::kMismatch);
      }
    }
  }
}

TEST(SimPayload, SizeOnlyComputesNothing) {
  const PayloadOutcome sums = run(options_of(5, PayloadMode::kSizeOnly), Op::kAllReduce, kCount);
  const PayloadOutcome copies = run(options_of(5, PayloadMode::kSizeOnly), Op::kBroadcast, kCount);
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(sums.results[rank], input_of(rank, kCount));
    EXPECT_EQ(copies.results[rank], input_of(rank, kCount));
  }
}

TEST(SimPayload, EqualResultsHaveEqualHashes) {
  for (const Op op : {Op::kAllReduce, Op::kBroadcast, Op::kAllGather}) {
    for (const int ranks : {2, 3, 4, 6, 8, 12, 16}) {
      for (const auto algorithm : {AllReduceAlgorithm::kRing, AllReduceAlgorithm::kBcube}) {
        SimWorldOptions options = options_of(ranks, PayloadMode::kHashed);
        options.all_reduce = algorithm;
        std::set<std::uint64_t> hashes;
        for (const Values& result : run(options, op, kCount).results)
          hashes.insert(hash_in(result));
        EXPECT_EQ(hashes.size(), 1u) << to_string(op) << " of " << ranks;
      }
    }
  }
}

TEST(SimPayload, AHashTellsEveryInputAndEveryFlippedBit) {
  for (const auto algorithm : {AllReduceAlgorithm::kRing, AllReduceAlgorithm::kBcube}) {
    SimWorldOptions options = options_of(6, PayloadMode::kHashed);
    options.all_reduce = algorithm;
    std::set<std::uint64_t> hashes{hash_in(run(options, Op::kAllReduce, kCount).results[0])};
    for (int rank = 0; rank < 6; ++rank) {
      hashes.insert(hash_in(run(options, Op::kAllReduce, kCount, rank).results[0]));
    }
    EXPECT_EQ(hashes.size(), 7u);
    options.faults = {sim::parse_fault("flip from=1 to=0 message=1 bit=77")};
    const PayloadOutcome flipped = run(options, Op::kAllReduce, kCount);
    EXPECT_EQ(flipped.report.faults_fired.size(), 1u);
    hashes.insert(hash_in(flipped.results[0]));
    EXPECT_EQ(hashes.size(), 8u);
  }
}

TEST(SimPayload, OnlyTheRootOfAReduceGetsAHash) {
  const PayloadOutcome outcome = run(options_of(4, PayloadMode::kHashed), Op::kReduce, kCount);
  EXPECT_NE(outcome.results[0], input_of(0, kCount));
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(outcome.results[rank], input_of(rank, kCount));
}

TEST(Hashes, TellWhatARangeIsMadeOfNotInHowManyMessagesItCame) {
  const std::vector<std::byte> bytes(64);
  Hashes sender, receiver;
  sender.set(&bytes[0], 16, 5);
  sender.set(&bytes[16], 8, 7);
  EXPECT_NE(sender.of(&bytes[0], 24), sender.of(&bytes[0], 16));
  receiver.set(&bytes[32], 24, sender.of(&bytes[0], 24));
  sender.set(&bytes[24], 8, 9);
  receiver.set(&bytes[56], 8, 9);
  EXPECT_EQ(sender.of(&bytes[0], 32), receiver.of(&bytes[32], 32));
  sender.set(&bytes[0], 16, 7), sender.set(&bytes[16], 8, 5);
  EXPECT_NE(sender.of(&bytes[0], 32), receiver.of(&bytes[32], 32));
}

TEST(Hashes, KeepWhatIsLeftOfAPieceThatIsPartlyOverwritten) {
  const std::vector<std::byte> bytes(64);
  Hashes hashes;
  hashes.set(&bytes[8], 32, 5);
  const std::uint64_t left = hashes.of(&bytes[8], 8), right = hashes.of(&bytes[32], 8);
  EXPECT_NE(left, right);
  hashes.set(&bytes[16], 16, 6);
  EXPECT_EQ(hashes.of(&bytes[8], 8), left);
  EXPECT_EQ(hashes.of(&bytes[16], 16), 6u);
  EXPECT_EQ(hashes.of(&bytes[32], 8), right);
}

}  // namespace
}  // namespace ddproof
