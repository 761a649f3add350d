// Gradients that accumulate before they are reduced, and means over samples instead of over ranks
// (SEMANTICS 3.5; PITFALLS P51 to P55).
#include <gtest/gtest.h>

#include "tests/unit/scripted_module.h"

namespace ddproof {
namespace {

float by_rank(const RankContext& rank, float on_rank_zero, float on_rank_one) {
  return rank.group.rank() == 0 ? on_rank_zero : on_rank_one;
}

TEST(NoSync, TheNextStepReducesAllThatWasAccumulated) {
  for (const char* backend : {"sim", "gloo"}) {
    run_ranks(
        2,
        [](RankContext& rank) {
          ScriptedModule module(2, 3);
          module.accumulates = true;
          DistributedDataParallel<float> ddp(module, rank.group, {});
          for (int repeat = 0; repeat < 3; ++repeat) {
            zero_grad(module);
            {
              const auto accumulating = ddp.no_sync();
              module.gradient = [&](std::size_t) { return by_rank(rank, 1, 2); };
              step(ddp);
              EXPECT_EQ(module.gradient_of(0), by_rank(rank, 1, 2));
            }
            module.gradient = [&](std::size_t) { return by_rank(rank, 10, 20); };
            step(ddp);
            EXPECT_EQ(module.gradient_of(0), 16.5F);
          }
        },
        backend);
  }
}

TEST(NoSync, PostsNothing) {
  run_ranks(2, [](RankContext& rank) {
    std::vector<std::string> log;
    RecordingGroup group(rank.group, log);
    ScriptedModule module(2, 3);
    DistributedDataParallel<float> ddp(module, group, {});
    log.clear();
    const auto accumulating = ddp.no_sync();
    step(ddp);
    EXPECT_TRUE(log.empty());
  });
}

TEST(NoSync, MustHoldFromForwardToBackward) {
  const std::string text =
      "DistributedDataParallel: no_sync() began or ended between forward and backward; keep both "
      "in it, or neither";
  EXPECT_EQ(refusals(1,
                     [](RankContext& rank) {
                       ScriptedModule module(1, 1);
                       DistributedDataParallel<float> ddp(module, rank.group, {});
                       ddp.forward({});
                       const auto accumulating = ddp.no_sync();
                       ddp.backward({}, {});
                     }),
            said_by_all(1, text));
  EXPECT_EQ(refusals(1,
                     [](RankContext& rank) {
                       ScriptedModule module(1, 1);
                       DistributedDataParallel<float> ddp(module, rank.group, {});
                       {
                         const auto accumulating = ddp.no_sync();
                         ddp.forward({});
                       }
                       ddp.backward({}, {});
                     }),
            said_by_all(1, text));
}

TEST(NoSync, OnOneRankOnlyIsNamed) {
  std::vector<std::string> texts(2);
  run_ranks(2, [&](RankContext& rank) {
    ScriptedModule module(1, 1);
    DistributedDataParallel<float> ddp(module, rank.group, {});
    step(ddp);
    try {
      if (rank.group.rank() == 0) {
        const auto accumulating = ddp.no_sync();
        step(ddp);
      } else {
        step(ddp);
      }
      rank.group.barrier({.label = "end of epoch"})->wait();
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommErrorKind::kMismatch);
      texts[static_cast<std::size_t>(rank.group.rank())] = error.what();
    }
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("bucket 0"), std::string::npos) << text;
    EXPECT_NE(text.find("end of epoch"), std::string::npos) << text;
  }
}

TEST(Backward, NeedsAForwardOfItsOwn) {
  EXPECT_EQ(refusals(1,
                     [](RankContext& rank) {
                       ScriptedModule module(1, 1);
                       DistributedDataParallel<float> ddp(module, rank.group, {});
                       step(ddp);
                       ddp.backward({}, {});
                     }),
            said_by_all(1, "DistributedDataParallel: backward without a forward of its own"));
}

TEST(Backward, BelongsToTheLastOfSeveralForwards) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    module.gradient = [&](std::size_t) { return by_rank(rank, 1, 3); };
    DistributedDataParallel<float> ddp(module, rank.group, {.find_unused_parameters = true});
    for (int repeat = 0; repeat < 2; ++repeat) {
      ddp.forward({});  // its output is ignored
      step(ddp);
      EXPECT_EQ(module.gradient_of(0), 2.0F);
    }
  });
}

// One update: each rank's micro-batches as (sum of gradients, samples). What the gradient becomes.
float mean_over_samples(const std::vector<std::vector<std::pair<float, std::int64_t>>>& batches) {
  float result = 0;
  run_ranks(static_cast<int>(batches.size()), [&](RankContext& rank) {
    ScriptedModule module(2, 1);
    module.accumulates = true;
    DistributedDataParallel<float> ddp(module, rank.group, {.averaging = Averaging::kSamples});
    const auto& mine = batches[static_cast<std::size_t>(rank.group.rank())];
    for (int repeat = 0; repeat < 2; ++repeat) {  // before and after the rebuild
      zero_grad(module);
      for (std::size_t i = 0; i < mine.size(); ++i) {
        std::optional<DistributedDataParallel<float>::NoSync> accumulating;
        if (i + 1 < mine.size()) accumulating.emplace(ddp);
        module.gradient = [&](std::size_t) { return mine[i].first; };
        ddp.forward({});
        ddp.count_samples(mine[i].second);
        ddp.backward({}, {});
      }
      result = module.gradient_of(0);
    }
  });
  return result;
}

TEST(AveragingOverSamples, WeighsEverySampleAlike) {
  EXPECT_EQ(mean_over_samples({{{5, 5}}, {{3, 3}}}), 1.0F);      // P51: 5 + 3 samples
  EXPECT_EQ(mean_over_samples({{{7 * 8, 7}}, {{0, 1}}}), 7.0F);  // one rank has a single sample
  EXPECT_EQ(mean_over_samples({{{12, 4}}, {{0, 0}}}), 3.0F);     // and none at all
  EXPECT_EQ(mean_over_samples({{{10, 10}, {100, 100}}}), 110 * (1.0F / 110));  // P52
  EXPECT_EQ(mean_over_samples({{{5, 5}}, {{150, 150}}}), 155 * (1.0F / 155));  // P53
  EXPECT_EQ(mean_over_samples({{{1, 1}, {1, 1}, {2, 2}}, {{4, 4}}}), 1.0F);  // uneven accumulation
}

TEST(AveragingBySum, OnlyAdds) {
  run_ranks(3, [](RankContext& rank) {
    ScriptedModule module(2, 1);
    module.gradient = [&](std::size_t) { return static_cast<float>(1 + rank.group.rank()); };
    DistributedDataParallel<float> ddp(module, rank.group, {.averaging = Averaging::kSum});
    for (int repeat = 0; repeat < 2; ++repeat) {
      step(ddp);
      EXPECT_EQ(module.gradient_of(0), 6.0F);
    }
  });
}

TEST(AveragingOverSamples, NobodyHasSamples) {
  EXPECT_EQ(mean_over_samples({{{0, 0}}, {{0, 0}}}), 0.0F);
}

TEST(AveragingOverSamples, HasToBeToldTheSamplesOfEachBackward) {
  const std::string text =
      "DistributedDataParallel: averages over samples; call count_samples() before each backward";
  EXPECT_EQ(refusals(1,
                     [](RankContext& rank) {
                       ScriptedModule module(1, 1);
                       DistributedDataParallel<float> ddp(module, rank.group,
                                                          {.averaging = Averaging::kSamples});
                       ddp.forward({});
                       ddp.count_samples(1);
                       ddp.backward({}, {});
                       step(ddp);
                     }),
            said_by_all(1, text));
}

}  // namespace
}  // namespace ddproof
