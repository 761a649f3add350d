// The sampler's facts, and bugs planted in a sampler that the property must find and shrink.
#include <gtest/gtest.h>

#include "properties/sampler_properties.h"
#include "tests/property/property_test.h"

namespace ddproof {
namespace {

using Shard = std::vector<std::int64_t>;

TEST(SamplerPartition, HoldsForTheReference) {
  OsRuntime runtime;
  const PropertyResult result = sampler_partition(property_options(runtime, 1000), runtime);
  expect_holds(result);
  // The classes that matter come up often, not once in a hundred cases.
  EXPECT_GT(result.classes.at("more ranks than samples"), result.cases / 4);
  EXPECT_GT(result.classes.at("padded more than once"), result.cases / 20);
  EXPECT_GT(result.classes.at("tail dropped"), result.cases / 5);
  EXPECT_GT(result.classes.at("tail kept"), result.cases / 5);
  EXPECT_GT(result.classes.at("resumed on other ranks"), result.cases / 4);
  EXPECT_GT(result.classes.at("resumed within a round"), result.cases / 10);
  EXPECT_GT(result.classes.at("short rest"), result.cases / 10);
}

void expect_mutant_found(const DrawShard& mutant, const std::string& shrunk) {
  OsRuntime runtime;
  expect_found(sampler_partition(property_options(runtime, 200), runtime, mutant), shrunk);
}

TEST(SamplerPartition, FindsPaddingThatWasRemoved) {
  expect_mutant_found(
      [](const SamplerOptions& options, std::int64_t epoch, std::int64_t position) {
        Shard shard = draw_reference_shard(options, epoch, position);
        const bool padded = options.tail == Tail::kPad && options.length % options.replicas != 0;
        if (padded && options.rank >= options.length % options.replicas) shard.pop_back();
        return shard;
      },
      "length=1 replicas=2 seed=0 epoch=0");
}

TEST(SamplerPartition, FindsBlocksInsteadOfStrides) {
  expect_mutant_found(
      [](SamplerOptions options, std::int64_t epoch, std::int64_t position) {
        const auto share = draw_reference_shard(options, epoch, position).size();
        const auto begin = static_cast<std::size_t>(options.rank) * share;
        options.replicas = 1;
        options.rank = 0;
        const Shard whole = draw_reference_shard(options, epoch, position);
        Shard shard;
        for (std::size_t i = 0; i < share; ++i) shard.push_back(whole[(begin + i) % whole.size()]);
        return shard;
      },
      "length=3 replicas=1 seed=0 epoch=0 shuffle=true tail=pad resume_position=2 "
      "resume_replicas=2\n"
      "  exact resume");
}

TEST(SamplerPartition, FindsAnOrderThatDependsOnTheRank) {
  expect_mutant_found(
      [](SamplerOptions options, std::int64_t epoch, std::int64_t position) {
        options.seed += static_cast<std::uint64_t>(options.rank);
        return draw_reference_shard(options, epoch, position);
      },
      "length=2 replicas=2 seed=0 epoch=0 shuffle=true");
}

TEST(SamplerPartition, FindsAResumeThatStartsOver) {
  expect_mutant_found(
      [](const SamplerOptions& options, std::int64_t epoch, std::int64_t position) {
        Shard shard = draw_reference_shard(options, epoch, 0);
        shard.resize(draw_reference_shard(options, epoch, position).size());
        return shard;
      },
      "length=2 replicas=1 seed=0 epoch=0 shuffle=true tail=pad resume_position=1 "
      "resume_replicas=1\n  exact");
}

// As torch's ElasticDistributedSampler does: what lies behind the place is shuffled anew.
TEST(SamplerPartition, FindsAResumeThatShufflesAnew) {
  expect_mutant_found(
      [](SamplerOptions options, std::int64_t epoch, std::int64_t position) {
        options.length -= position;
        Shard shard = draw_reference_shard(options, epoch, 0);
        for (std::int64_t& index : shard) index += position;
        return shard;
      },
      "resume_position=1 resume_replicas=2\n  exact resume");
}

// P9: the count that is skipped belongs to another number of ranks.
TEST(SamplerPartition, FindsASkipThatCountsRoundsOfTheNewRanks) {
  expect_mutant_found(
      [](const SamplerOptions& options, std::int64_t epoch, std::int64_t position) {
        return draw_reference_shard(options, epoch, position / options.replicas * options.replicas);
      },
      "exact resume");
}

}  // namespace
}  // namespace ddproof
