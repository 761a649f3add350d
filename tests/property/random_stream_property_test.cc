// The streams' fact, and the worker seeds of public bug reports, which the property must find.
#include <gtest/gtest.h>

#include <random>

#include "properties/random_stream_properties.h"
#include "tests/property/property_test.h"

namespace ddproof {
namespace {

TEST(DistinctStreams, HoldsForTheReference) {
  OsRuntime runtime;
  const PropertyResult result = distinct_streams(property_options(runtime, 300), runtime);
  expect_holds(result);
  EXPECT_GT(result.classes.at("many ranks"), result.cases / 2);
  EXPECT_GT(result.classes.at("many workers"), result.cases / 2);
}

std::vector<std::uint64_t> seeded_with(std::uint64_t seed, int count) {
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(generator());
  return numbers;
}

void expect_mutant_found(const DrawWorkerNumbers& mutant, const std::string& shrunk) {
  OsRuntime runtime;
  expect_found(distinct_streams(property_options(runtime, 200), runtime, mutant), shrunk);
}

// P11, transformers#37932.
TEST(DistinctStreams, FindsASeedWithoutTheRank) {
  expect_mutant_found(
      [](const WorkerKey& key, int count) {
        return seeded_with(key.seed + 1000 * static_cast<std::uint64_t>(key.epoch) +
                               static_cast<std::uint64_t>(key.worker),
                           count);
      },
      "world_size=2 workers=1 seed=0 epoch=0\n"
      "  distinct streams: rank 1's worker 0 in epoch 0 draws the same 10 numbers as rank 0's "
      "worker 0 in epoch 0");
}

// P12, fairseq#1383 and pytorch#5059: forked workers go on from copies of one state.
TEST(DistinctStreams, FindsAStateThatForkedWorkersCopy) {
  expect_mutant_found(
      [](const WorkerKey& key, int count) {
        return seeded_with(key.seed + static_cast<std::uint64_t>(key.epoch * 8 + key.rank), count);
      },
      "world_size=1 workers=2 seed=0 epoch=0\n"
      "  distinct streams: rank 0's worker 1 in epoch 0 draws the same 10 numbers as rank 0's "
      "worker 0 in epoch 0");
}

// P12's second half: each epoch forks from the same state again.
TEST(DistinctStreams, FindsASeedWithoutTheEpoch) {
  expect_mutant_found(
      [](const WorkerKey& key, int count) {
        return seeded_with(key.seed + static_cast<std::uint64_t>(key.rank * 8 + key.worker), count);
      },
      "world_size=1 workers=1 seed=0 epoch=0\n"
      "  distinct streams: rank 0's worker 0 in epoch 1 draws the same 10 numbers as rank 0's "
      "worker 0 in epoch 0");
}

TEST(DistinctStreams, FindsASumOfRankAndWorker) {
  expect_mutant_found(
      [](const WorkerKey& key, int count) {
        return seeded_with(
            key.seed + static_cast<std::uint64_t>(key.epoch * 100 + key.rank + key.worker), count);
      },
      "world_size=2 workers=2 seed=0 epoch=0");
}

}  // namespace
}  // namespace ddproof
