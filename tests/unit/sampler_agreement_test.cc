// Ranks whose samplers differ are refused on every rank, and told which rank has what.
#include "reference/train/sampler_agreement.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "backends/api/error.h"
#include "backends/registry/registry.h"

namespace ddproof {
namespace {

// What each of three ranks is told when `change` is made on rank 2.
std::map<int, std::string> refusals(
    const std::function<void(SamplerOptions&, std::int64_t&)>& change) {
  std::map<int, std::string> texts;
  make_backend("sim")->run_world({.world_size = 3}, [&](RankContext& context) {
    const int rank = context.group.rank();
    SamplerOptions options{.length = 10, .replicas = 3, .rank = rank, .seed = 5};
    std::int64_t epoch = 1;
    if (rank == 2) change(options, epoch);
    DistributedSampler sampler(options);
    sampler.set_epoch(epoch);
    try {
      require_same_sampler(context.group, sampler);
    } catch (const ConfigError& error) {
      texts[rank] = error.what();
    }
  });
  return texts;
}

void expect_refused(const std::function<void(SamplerOptions&, std::int64_t&)>& change,
                    const std::string& difference) {
  const auto texts = refusals(change);
  ASSERT_EQ(texts.size(), 3u) << difference;
  for (const auto& [rank, text] : texts) {
    EXPECT_EQ(text, "rank " + std::to_string(rank) +
                        "/3 [sim] settings differ between ranks: " + difference +
                        "; ranks would draw wrong samples; give every rank the same, and each "
                        "epoch to set_epoch()");
  }
}

TEST(SamplerAgreement, HoldsWhereOnlyTheRankDiffers) {
  EXPECT_TRUE(refusals([](SamplerOptions&, std::int64_t&) {}).empty());
}

// SEMANTICS 1.1: with N=10 and two epochs PyTorch loses 1, 5 and 9 and says nothing.
TEST(SamplerAgreement, AnotherEpochIsAnErrorOnEveryRank) {
  expect_refused([](SamplerOptions&, std::int64_t& epoch) { epoch = 2; },
                 "the sampler's epoch is 1 on rank 0 and 2 on rank 2");
}

TEST(SamplerAgreement, SoIsAnotherSeedLengthOrTail) {
  expect_refused(
      [](SamplerOptions& options, std::int64_t&) {
        options.seed = 6;
        options.length = 11;
        options.tail = Tail::kDrop;
        options.shuffle = false;
      },
      "the sampler's length is 10 on rank 0 and 11 on rank 2, the sampler's shuffle is true on "
      "rank 0 and false on rank 2, the sampler's seed is 5 on rank 0 and 6 on rank 2, the "
      "sampler's tail is pad on rank 0 and drop on rank 2");
}

// Seed 4 in epoch 2 is the order of seed 5 in epoch 1, but hardly meant.
TEST(SamplerAgreement, AnEqualSumOfSeedAndEpochIsNotEnough) {
  expect_refused(
      [](SamplerOptions& options, std::int64_t& epoch) {
        options.seed = 4;
        epoch = 2;
      },
      "the sampler's seed is 5 on rank 0 and 4 on rank 2, the sampler's epoch is 1 on rank 0 and 2 "
      "on rank 2");
}

TEST(SamplerAgreement, ASamplerMadeForAnotherRankIsAnErrorToo) {
  expect_refused([](SamplerOptions& options, std::int64_t&) { options.rank = 1; },
                 "the sampler's place is that of its rank on rank 0 and 1 of 3 on rank 2");
}

}  // namespace
}  // namespace ddproof
