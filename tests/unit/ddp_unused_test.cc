// Parameters that a step does not reach: find_unused_parameters and static_graph (SEMANTICS 3.4).
#include <gtest/gtest.h>

#include "tests/unit/scripted_module.h"

namespace ddproof {
namespace {

using Log = std::vector<std::string>;

bool is_rank_one(const RankContext& rank) { return rank.group.rank() == 1; }

TEST(UnusedParameters, OfOneRankGetTheMeanWithItsZeros) {
  for (const char* backend : {"sim", "gloo"}) {
    for (const bool tells : {false, true}) {
      run_ranks(
          2,
          [&](RankContext& rank) {
            ScriptedModule module(2, 3);
            module.tells_unused = tells;
            module.gradient = [](std::size_t) { return 3.0F; };
            module.skip = [&](std::size_t i) { return i == 0 && is_rank_one(rank); };
            DistributedDataParallel<float> ddp(module, rank.group,
                                               {.find_unused_parameters = true});
            for (int repeat = 0; repeat < 3; ++repeat) {
              zero_grad(module);
              step(ddp);
              EXPECT_EQ(module.gradient_of(0), 1.5F);
              EXPECT_EQ(module.gradient_of(1), 3.0F);
              EXPECT_TRUE(module.parameters()[0]->has_gradient);
            }
          },
          backend);
    }
  }
}

TEST(UnusedParameters, OfAllRanksKeepTheirGradient) {
  for (const DdpOptions& options :
       {DdpOptions{.find_unused_parameters = true}, DdpOptions{.static_graph = true}}) {
    run_ranks(2, [&](RankContext& rank) {
      ScriptedModule module(3, 2);
      DistributedDataParallel<float> ddp(module, rank.group, options);
      module.skip = [](std::size_t i) { return i != 2; };
      Parameter<float>& accumulated = *module.parameters()[0];
      for (int repeat = 0; repeat < 3; ++repeat) {
        accumulated.has_gradient = true;
        for (float& value : accumulated.gradient.span()) value = 7;
        step(ddp);
        EXPECT_EQ(module.gradient_of(0), 7.0F);
        EXPECT_TRUE(accumulated.has_gradient);
        EXPECT_FALSE(module.parameters()[1]->has_gradient);
        EXPECT_EQ(module.gradient_of(2), 1.0F);
      }
    });
  }
}

TEST(UnusedParameters, SendWhatTheRankHadAccumulated) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    DistributedDataParallel<float> ddp(module, rank.group, {.find_unused_parameters = true});
    module.accumulates = true;
    module.gradient = [](std::size_t) { return 4.0F; };
    {
      const auto accumulating = ddp.no_sync();
      step(ddp);
    }
    module.skip = [&](std::size_t) { return is_rank_one(rank); };
    step(ddp);
    EXPECT_EQ(module.gradient_of(0), 6.0F);  // (8 + 4) / 2
  });
}

TEST(UnusedParameters, CountAsUsedWhenOnlyAccumulationReachedThem) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(2, 1);
    DistributedDataParallel<float> ddp(module, rank.group, {.find_unused_parameters = true});
    module.accumulates = true;
    for (int repeat = 0; repeat < 2; ++repeat) {
      zero_grad(module);
      {
        const auto accumulating = ddp.no_sync();
        module.skip = [&](std::size_t i) { return i == 0 && is_rank_one(rank); };
        step(ddp);
      }
      module.skip = [](std::size_t i) { return i == 0; };
      step(ddp);
      EXPECT_EQ(module.gradient_of(0), 0.5F);
      EXPECT_TRUE(module.parameters()[0]->has_gradient);
    }
    zero_grad(module);
    step(ddp);  // what was reached then does not count any more
    EXPECT_FALSE(module.parameters()[0]->has_gradient);
  });
}

TEST(UnusedParameters, TheirBucketsAreThoseOfRegistrationForEver) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(8, 65536);
    DistributedDataParallel<float> ddp(module, rank.group, {.find_unused_parameters = true});
    for (int repeat = 0; repeat < 3; ++repeat) {
      EXPECT_EQ(ddp.reducer().bucket_parameters(),
                (std::vector<std::vector<std::size_t>>{{4, 5, 6, 7}, {0, 1, 2, 3}}));
      EXPECT_TRUE(ddp.reducer().gradient_order().empty());
      step(ddp);
    }
  });
}

// The labels that one step of eight layers posts, with the names of the parameters as they become
// ready; parameter 5 is unused.
Log log_of_step(RankContext& rank, const DdpOptions& options, bool tells_unused, int steps) {
  Log log;
  RecordingGroup group(rank.group, log);
  ScriptedModule module(8, 65536);
  module.tells_unused = tells_unused;
  module.skip = [](std::size_t i) { return i == 5; };
  DistributedDataParallel<float> ddp(module, group, options);
  for (int i = 1; i < steps; ++i) step(ddp);
  ddp.forward({});
  log.clear();
  ddp.backward({}, [&](Parameter<float>& parameter) { log.push_back(parameter.name); });
  return log;
}

TEST(UnusedParameters, LetTheirBucketGoAsSoonAsTheyAreKnown) {
  run_ranks(2, [](RankContext& rank) {
    const DdpOptions options{.find_unused_parameters = true};
    EXPECT_EQ(
        log_of_step(rank, options, true, 2),
        (Log{"p7", "p6", "p4", "bucket 0", "p3", "p2", "p1", "p0", "bucket 1", "used parameters"}));
    EXPECT_EQ(
        log_of_step(rank, options, false, 2),
        (Log{"p7", "p6", "p4", "p3", "p2", "p1", "p0", "bucket 0", "bucket 1", "used parameters"}));
  });
}

TEST(StaticGraph, ReducesNothingBeforeTheFirstBackwardHasEnded) {
  run_ranks(2, [](RankContext& rank) {
    const DdpOptions options{.static_graph = true};
    EXPECT_EQ(log_of_step(rank, options, false, 1),
              (Log{"p7", "p6", "p4", "p3", "p2", "p1", "p0", "bucket 0", "used parameters"}));
  });
}

TEST(StaticGraph, OverlapsLaterWithoutAMapOfUsedParameters) {
  run_ranks(2, [](RankContext& rank) {
    const DdpOptions options{.static_graph = true};
    EXPECT_EQ(log_of_step(rank, options, false, 3),
              (Log{"p7", "p6", "p4", "p3", "bucket 0", "p2", "p1", "p0", "bucket 1"}));
  });
}

TEST(StaticGraph, AParameterIsCompleteWithItsLastReport) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(2, 1);
    module.reports = 3;
    module.gradient = [&](std::size_t) { return is_rank_one(rank) ? 2.0F : 0.0F; };
    DistributedDataParallel<float> ddp(module, rank.group, {.static_graph = true});
    for (int repeat = 0; repeat < 3; ++repeat) {
      step(ddp);
      EXPECT_EQ(module.gradient_of(0), 1.0F);
    }
  });
}

TEST(StaticGraph, AnotherGraphFailsTheSameStepOnEveryRank) {
  const auto texts = [](std::size_t first, std::size_t then) {
    return refusals(2, [=](RankContext& rank) {
      ScriptedModule module(3, 1);
      module.skip = [=](std::size_t i) { return i == first; };
      DistributedDataParallel<float> ddp(module, rank.group, {.static_graph = true});
      step(ddp);
      step(ddp);
      module.skip = [=, &rank](std::size_t i) { return i == (is_rank_one(rank) ? then : first); };
      step(ddp);
    });
  };
  EXPECT_EQ(texts(3, 1), said_by_all(2,
                                     "DistributedDataParallel: no gradient in this step for p1 on "
                                     "rank 1 (1 missing over all ranks); every parameter must take "
                                     "part in every step that took part in the first "
                                     "(static_graph)"));
  EXPECT_EQ(texts(1, 3),
            said_by_all(2,
                        "DistributedDataParallel: p1 on rank 1 has a gradient in this step and had "
                        "none in the first, but static_graph is set; unset it, or use "
                        "find_unused_parameters"));
}

TEST(StaticGraph, IsTheSameOnAllRanksOrRefused) {
  const auto texts = refusals(2, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    DistributedDataParallel<float> ddp(module, rank.group, {.static_graph = is_rank_one(rank)});
  });
  EXPECT_EQ(texts, said_by_all(2,
                               "settings differ between ranks: static_graph is false on rank 0 and "
                               "true on rank 1; make DistributedDataParallel with the same options "
                               "on every rank"));
}

}  // namespace
}  // namespace ddproof
