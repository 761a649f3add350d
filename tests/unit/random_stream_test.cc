// Streams by key: the published vectors, distinct counters, unbiased bounds.
#include "reference/data/random_stream.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "backends/api/error.h"

namespace ddproof {
namespace {

// Random123's kat_vectors.
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::array<std::uint32_t, 6> six(RandomStream stream) {
  std::array<std::uint32_t, 6> numbers{};
  for (std::uint32_t& number : numbers) number = stream.next();
  return numbers;
}

TEST(RandomStream, GoesThroughTheBlocksOfItsKey) {
  const std::uint64_t seed = 0x299f31d0a4093822;
  const PhiloxCounter first = philox({0, 7, 9, 1}, {0xa4093822, 0x299f31d0});
  const PhiloxCounter second = philox({1, 7, 9, 1}, {0xa4093822, 0x299f31d0});
  EXPECT_EQ(six(RandomStream::of_sample(seed, 7, (std::int64_t{1} << 32) + 9)),
            (std::array{first[0], first[1], first[2], first[3], second[0], second[1]}));
}

// Every word of every key counts, and samples and workers never share a stream.
TEST(RandomStream, IsAnotherOneForEachKey) {
  const std::int64_t big = std::int64_t{1} << 33;
  std::set<std::array<std::uint32_t, 6>> streams;
  int keys = 0;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (const std::int64_t epoch : {0, 1}) {
      for (const std::int64_t sample : {std::int64_t{0}, std::int64_t{1}, big}) {
        streams.insert(six(RandomStream::of_sample(seed, epoch, sample)));
        ++keys;
      }
      for (const int rank : {0, 1, 2}) {
        for (const int worker : {0, 1, 2}) {
          streams.insert(six(RandomStream::of_worker(seed, epoch, rank, worker)));
          ++keys;
        }
      }
    }
  }
  EXPECT_EQ(streams.size(), static_cast<std::size_t>(keys));
}

// P11, transformers#37932: 2 ranks with 2 workers each, seed 0.
TEST(RandomStream, EachWorkerOfEachRankHasItsOwn) {
  std::set<std::uint32_t> first_numbers;
  for (const int rank : {0, 1}) {
    for (const int worker : {0, 1}) {
      first_numbers.insert(RandomStream::of_worker(0, 0, rank, worker).next());
    }
  }
  EXPECT_EQ(first_numbers.size(), 4u);
}

// P12, fairseq#1383: 8 workers, 10 draws each, two epochs.
TEST(RandomStream, WorkersAndEpochsGiveDistinctRows) {
  std::set<std::array<std::uint32_t, 10>> rows;
  for (const std::int64_t epoch : {1, 2}) {
    for (int worker = 0; worker < 8; ++worker) {
      RandomStream stream = RandomStream::of_worker(0, epoch, 0, worker);
      std::array<std::uint32_t, 10> row{};
      for (std::uint32_t& number : row) number = stream.next();
      rows.insert(row);
    }
  }
  EXPECT_EQ(rows.size(), 16u);
}

// 3 * 2^30 of 2^32: without rejection the first third would come twice as often.
TEST(RandomStream, BelowIsUnbiased) {
  RandomStream stream = RandomStream::of_sample(1, 0, 0);
  std::array<int, 3> thirds{};
  for (int i = 0; i < 30000; ++i) ++thirds[stream.below(std::uint32_t{3} << 30) >> 30];
  for (const int count : thirds) EXPECT_NEAR(count, 10000, 6 * 82);  // 6 standard deviations
}

TEST(RandomStream, BelowOneIsZero) {
  RandomStream stream = RandomStream::of_sample(1, 0, 0);
  EXPECT_EQ(stream.below(1), 0U);
}

template <class Make>
std::string error_of(const Make& make) {
  try {
    make();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(RandomStream, RefusesKeysOutOfRange) {
  EXPECT_EQ(error_of([] { RandomStream::of_sample(0, -1, 0); }),
            "random stream: epoch is -1, expected 0 to 4294967295");
  EXPECT_EQ(error_of([] { RandomStream::of_sample(0, 0, -1); }),
            "random stream: sample is -1, expected 0 to 4611686018427387903");
  EXPECT_EQ(error_of([] { RandomStream::of_worker(0, 0, -1, 0); }),
            "random stream: rank is -1, expected 0 to 2147483647");
  EXPECT_EQ(error_of([] { RandomStream::of_worker(0, 0, 0, 1 << 30); }),
            "random stream: worker is 1073741824, expected 0 to 1073741823");
  EXPECT_EQ(error_of([] { RandomStream::of_worker(0, std::int64_t{1} << 32, 0, 0); }),
            "random stream: epoch is 4294967296, expected 0 to 4294967295");
}

}  // namespace
}  // namespace ddproof
