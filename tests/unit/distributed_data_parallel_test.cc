// The DDP wrapper and its reducer on simulated ranks. Numbers are small integers and powers of two,
// so that every expectation is exact.
#include "reference/ddp/distributed_data_parallel.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tests/unit/scripted_module.h"

namespace ddproof {
namespace {

TEST(DistributedDataParallel, GradientsBecomeTheMeanOverRanks) {
  run_ranks(4, [](RankContext& rank) {
    ScriptedModule module(3, 5);
    module.gradient = [&](std::size_t i) {
      return static_cast<float>(rank.group.rank() + 10 * static_cast<int>(i));
    };
    DistributedDataParallel<float> ddp(module, rank.group, {});
    for (int repeat = 0; repeat < 3; ++repeat) {  // before, at and after the rebuild
      step(ddp);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(module.gradient_of(i), 1.5F + 10 * static_cast<float>(i));
      }
    }
  });
}

TEST(DistributedDataParallel, EveryRankStartsWithRankZerosParameters) {
  run_ranks(3, [](RankContext& rank) {
    ScriptedModule module(2, 4);
    for (Parameter<float>* parameter : module.parameters()) {
      for (float& value : parameter->value.span()) {
        value = static_cast<float>(rank.group.rank() + 1);
      }
    }
    DistributedDataParallel<float> ddp(module, rank.group, {});
    for (Parameter<float>* parameter : module.parameters()) {
      for (const float value : parameter->value.span()) EXPECT_EQ(value, 1.0F);
    }
  });
}

TEST(DistributedDataParallel, BucketsFollowTheOrderOfReadinessFromTheSecondStepOn) {
  // SEMANTICS 3.2: eight layers of 256 KiB each.
  using Buckets = std::vector<std::vector<std::size_t>>;
  const auto layout = [](std::int64_t cap) {
    std::pair<Buckets, Buckets> seen;
    run_ranks(2, [&](RankContext& rank) {
      ScriptedModule module(8, 65536);
      DistributedDataParallel<float> ddp(module, rank.group, {.bucket_cap_bytes = cap});
      step(ddp);
      const Buckets first = ddp.reducer().bucket_parameters();
      step(ddp);
      if (rank.group.rank() == 0) seen = {first, ddp.reducer().bucket_parameters()};
    });
    return seen;
  };
  const Buckets one{{0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(layout(kDefaultBucketBytes), std::pair(one, Buckets{{7, 6, 5, 4}, {3, 2, 1, 0}}));
  EXPECT_EQ(layout(std::int64_t{1} << 19), std::pair(one, Buckets{{7, 6, 5, 4}, {3, 2}, {1, 0}}));
}

TEST(DistributedDataParallel, EveryRankAdoptsRankZerosOrder) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(8, 65536);
    module.ascending = rank.group.rank() == 1;
    module.gradient = [](std::size_t i) { return static_cast<float>(i); };
    DistributedDataParallel<float> ddp(module, rank.group, {});
    step(ddp);
    step(ddp);
    EXPECT_EQ(ddp.reducer().bucket_parameters(),
              (std::vector<std::vector<std::size_t>>{{7, 6, 5, 4}, {3, 2, 1, 0}}));
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(module.gradient_of(i), static_cast<float>(i));
  });
}

TEST(DistributedDataParallel, ARebuildKeepsTheGradients) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(8, 65536);
    module.gradient = [](std::size_t i) { return static_cast<float>(i + 1); };
    DistributedDataParallel<float> ddp(module, rank.group, {});
    step(ddp);
    const auto before = ddp.reducer().bucket_parameters();
    ddp.forward({});
    EXPECT_NE(ddp.reducer().bucket_parameters(), before);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(module.gradient_of(i), static_cast<float>(i + 1));
  });
}

TEST(DistributedDataParallel, TheGradientsOutliveTheWrapper) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(2, 300);
    std::vector<const float*> in_buckets;
    {
      DistributedDataParallel<float> ddp(module, rank.group, {});
      step(ddp);
      for (Parameter<float>* parameter : module.parameters()) {
        in_buckets.push_back(parameter->gradient.data());
      }
      EXPECT_EQ(in_buckets[1] - in_buckets[0], 300);  // the views of one bucket
    }
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NE(module.parameters()[i]->gradient.data(), in_buckets[i]);
      EXPECT_EQ(module.gradient_of(i), 1.0F);
    }
  });
}

TEST(DistributedDataParallel, AGradientThatLeftItsBucketIsRefused) {
  const std::string text =
      "rank 0/1 [sim] DistributedDataParallel: the gradient of p0 is no longer in its bucket; wrap "
      "a module once at a time, and write into gradients instead of replacing them";
  const auto replaced = refusals(1, [](RankContext& rank) {
    ScriptedModule module(1, 3);
    DistributedDataParallel<float> ddp(module, rank.group, {});
    Tensor<float>& gradient = module.parameters()[0]->gradient;
    gradient = Tensor<float>(gradient.device(), {3});
    step(ddp);
  });
  EXPECT_EQ(replaced[0], text);
  const auto wrapped_twice = refusals(1, [](RankContext& rank) {
    ScriptedModule module(1, 3);
    DistributedDataParallel<float> first(module, rank.group, {});
    DistributedDataParallel<float> second(module, rank.group, {});
    step(second);
    step(first);
  });
  EXPECT_EQ(wrapped_twice[0], text);
}

TEST(DistributedDataParallel, AWrapperMayTakeThePlaceOfAnother) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(2, 3);
    auto ddp = std::make_unique<DistributedDataParallel<float>>(module, rank.group, DdpOptions{});
    step(*ddp);
    ddp = std::make_unique<DistributedDataParallel<float>>(module, rank.group, DdpOptions{});
    module.gradient = [&](std::size_t) { return static_cast<float>(rank.group.rank()); };
    step(*ddp);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(module.gradient_of(i), 0.5F);
  });
}

TEST(DistributedDataParallel, BucketsAreReducedWhileBackwardGoesOn) {
  run_ranks(2, [](RankContext& rank) {
    std::vector<std::string> log;
    RecordingGroup group(rank.group, log);
    ScriptedModule module(8, 65536);
    DistributedDataParallel<float> ddp(module, group, {.bucket_cap_bytes = 1 << 19});
    step(ddp);
    ddp.forward({});
    log.clear();
    ddp.backward({}, [&](Parameter<float>& parameter) { log.push_back(parameter.name); });
    EXPECT_EQ(log, (std::vector<std::string>{"p7", "p6", "p5", "p4", "bucket 0", "p3", "p2",
                                             "bucket 1", "p1", "p0", "bucket 2"}));
  });
}

TEST(DistributedDataParallel, AMissingGradientFailsTheSameStepOnEveryRank) {
  // PITFALLS P26, also where the missing one is not in the last bucket.
  for (std::size_t missing : {std::size_t{0}, std::size_t{7}}) {
    const auto texts = refusals(3, [&](RankContext& rank) {
      ScriptedModule module(8, 65536);
      DistributedDataParallel<float> ddp(module, rank.group, {});
      step(ddp);
      module.skip = [&](std::size_t i) { return rank.group.rank() == 1 && i == missing; };
      step(ddp);
    });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(texts[static_cast<std::size_t>(rank)],
                "rank " + std::to_string(rank) +
                    "/3 [sim] DistributedDataParallel: no gradient in this step for p" +
                    std::to_string(missing) +
                    " on rank 1 (1 missing over all ranks); every parameter must take part in "
                    "every step");
    }
  }
}

TEST(DistributedDataParallel, AParameterThatIsReadyTwiceIsRefused) {
  const auto texts = refusals(1, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    Reducer<float> reducer(module.parameters(), rank.group, {});
    reducer.prepare_backward();
    reducer.mark_ready(*module.parameters()[0]);
    reducer.mark_ready(*module.parameters()[0]);
  });
  EXPECT_EQ(texts[0],
            "rank 0/1 [sim] DistributedDataParallel: parameter p0 became ready twice in one "
            "backward");
}

TEST(DistributedDataParallel, ModelsThatDifferAreRefusedOnEveryRank) {
  struct Difference {
    const char* what;
    std::function<void(ScriptedModule&)> on_rank_two;
    std::string text;
  };
  const auto base = [](ScriptedModule& module) { module.add("a", {2, 3}); };
  const Difference differences[] = {
      {"count",
       [&](ScriptedModule& m) {
         base(m);
         m.add("b", {1});
       },
       "rank 0 has 2 parameters, rank 2 has 3"},
      {"name",
       [](ScriptedModule& m) {
         m.add("b", {2, 3});
       },
       "parameter 1 is a float32 [2, 3] on rank 0 and b float32 [2, 3] on rank 2"},
      {"shape",
       [](ScriptedModule& m) {
         m.add("a", {3, 2});
       },
       "parameter 1 is a float32 [2, 3] on rank 0 and a float32 [3, 2] on rank 2"},
  };
  for (const Difference& difference : differences) {
    const auto texts = refusals(3, [&](RankContext& rank) {
      ScriptedModule module(1, 4);
      rank.group.rank() == 2 ? difference.on_rank_two(module) : base(module);
      DistributedDataParallel<float> ddp(module, rank.group, {});
    });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(texts[static_cast<std::size_t>(rank)],
                "rank " + std::to_string(rank) +
                    "/3 [sim] DistributedDataParallel: the model differs between ranks: " +
                    difference.text + "; build the same model, in the same order, on every rank")
          << difference.what;
    }
  }
}

TEST(DistributedDataParallel, SettingsThatMakeNoSenseAreRefused) {
  const auto cap = refusals(1, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    DistributedDataParallel<float> ddp(module, rank.group, {.bucket_cap_bytes = 0});
  });
  EXPECT_EQ(cap[0], "bucket cap is 0 bytes, must be at least 1");
  const auto empty = refusals(1, [](RankContext& rank) {
    ScriptedModule module(0, 1);
    DistributedDataParallel<float> ddp(module, rank.group, {});
  });
  EXPECT_EQ(empty[0], "DistributedDataParallel needs at least one parameter with a gradient");
}

TEST(DistributedDataParallel, ARankThatThrowsInBackwardEndsTheStepOfItsPeers) {
  std::vector<bool> lost(3, false);
  EXPECT_THROW(run_ranks(3,
                         [&](RankContext& rank) {
                           ScriptedModule module(8, 65536);
                           DistributedDataParallel<float> ddp(module, rank.group,
                                                              {.bucket_cap_bytes = 1 << 19});
                           step(ddp);
                           module.gradient = [&](std::size_t i) {
                             if (rank.group.rank() == 1 && i == 1)
                               throw std::domain_error("rank 1");
                             return 1.0F;
                           };
                           try {
                             step(ddp);
                           } catch (const CommError& error) {
                             lost[static_cast<std::size_t>(rank.group.rank())] =
                                 error.kind() == CommErrorKind::kPeerLost;
                           }
                         }),
               std::domain_error);
  EXPECT_EQ(lost, (std::vector<bool>{true, false, true}));
}

}  // namespace
}  // namespace ddproof
