// Ranks with different numbers of batches (SEMANTICS section 5; PITFALLS P30).
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/unit/scripted_module.h"

namespace ddproof {
namespace {

using Ddp = DistributedDataParallel<float>;

// So many steps on this rank of an epoch; what the first gradient becomes in each.
std::vector<float> epoch(Ddp& ddp, ScriptedModule& module, const JoinOptions& options, int steps) {
  std::vector<float> seen;
  ddp.join(options, [&] {
    for (int i = 0; i < steps; ++i) {
      step(ddp);
      seen.push_back(module.gradient_of(0));
    }
  });
  return seen;
}

TEST(Join, DividesByTheInitialWorldSizeOrByTheRanksWithInput) {
  for (const char* backend : {"sim", "gloo"}) {
    for (const bool by_initial : {true, false}) {
      run_ranks(
          2,
          [&](RankContext& rank) {
            ScriptedModule module(2, 3);
            module.gradient = [&](std::size_t) { return 1.0F + rank.group.rank(); };
            Ddp ddp(module, rank.group, {});
            const auto seen = epoch(ddp, module, {.divide_by_initial_world_size = by_initial},
                                    rank.group.rank() == 0 ? 3 : 1);
            const float alone = by_initial ? 0.5F : 1.0F;
            if (rank.group.rank() == 0) {
              EXPECT_EQ(seen, (std::vector<float>{1.5F, alone, alone}));
            } else {
              EXPECT_EQ(seen, (std::vector<float>{1.5F}));
            }
          },
          backend);
    }
  }
}

TEST(Join, LaterEpochsStayPaired) {
  run_ranks(3, [](RankContext& rank) {
    const int me = rank.group.rank();
    ScriptedModule module(8, 65536);  // several buckets once they are rebuilt
    Ddp ddp(module, rank.group, {.find_unused_parameters = false});
    for (int number = 1; number <= 3; ++number) {
      module.gradient = [&](std::size_t) { return static_cast<float>(3 * number + 3 * me); };
      const auto seen = epoch(ddp, module, {}, me == 0 ? 3 : 2);
      EXPECT_EQ(seen[0], 3.0F * number + 3);
      EXPECT_EQ(seen[1], 3.0F * number + 3);
      if (me == 0) {
        EXPECT_EQ(seen[2], 1.0F * number);
      }
    }
  });
}

TEST(Join, ARankWithoutAnyInputTakesPart) {
  for (const bool find_unused : {false, true}) {
    run_ranks(3, [&](RankContext& rank) {
      const int me = rank.group.rank();
      ScriptedModule module(8, 65536);
      module.gradient = [](std::size_t) { return 3.0F; };
      Ddp ddp(module, rank.group, {.find_unused_parameters = find_unused});
      for (int number = 0; number < 2; ++number) {
        const auto seen = epoch(ddp, module, {}, me == 0 ? 0 : 3);
        if (me != 0) {
          EXPECT_EQ(seen, (std::vector<float>{2, 2, 2}));
        }
      }
    });
  }
}

TEST(Join, EveryRankEndsWithTheStateOfOneThatMadeTheLastStep) {
  run_ranks(3, [](RankContext& rank) {
    const int me = rank.group.rank();
    ScriptedModule module(1, 1);
    module.add_buffer("steps");
    module.on_forward = [&] { module.buffer(0) += 1; };
    Ddp ddp(module, rank.group, {});
    ddp.join({}, [&] {
      for (int i = 0; i < (me == 1 ? 3 : 1); ++i) {
        step(ddp);
        module.parameters()[0]->value.span()[0] += 1;  // an optimizer's step
      }
    });
    EXPECT_EQ(module.parameters()[0]->value.span()[0], 3.0F);
    EXPECT_EQ(module.buffer(0), 3.0F);
  });
}

TEST(Join, StepsThatAreNotReducedStayPaired) {
  run_ranks(2, [](RankContext& rank) {
    const int me = rank.group.rank();
    ScriptedModule module(1, 1);
    module.add_buffer("mean");
    module.accumulates = true;
    module.gradient = [](std::size_t) { return 1.0F; };
    Ddp ddp(module, rank.group, {});
    std::vector<float> seen;
    ddp.join({}, [&] {
      for (int i = 0; i < (me == 0 ? 4 : 1); ++i) {
        std::optional<Ddp::NoSync> accumulating;
        if (i % 2 == 0) accumulating.emplace(ddp);
        step(ddp);
        seen.push_back(module.gradient_of(0));
        if (i % 2 == 1) zero_grad(module);
      }
    });
    if (me == 0) {
      EXPECT_EQ(seen, (std::vector<float>{1, 1, 1, 1}));  // (1 + 1) / 2 when reduced
    }
  });
}

TEST(Join, SamplesOfRanksWithInputCountAlone) {
  run_ranks(2, [](RankContext& rank) {
    const int me = rank.group.rank();
    ScriptedModule module(1, 1);
    module.gradient = [](std::size_t) { return 12.0F; };
    Ddp ddp(module, rank.group, {.averaging = Averaging::kSamples});
    std::vector<float> seen;
    ddp.join({}, [&] {
      for (int i = 0; i < (me == 0 ? 2 : 1); ++i) {
        ddp.forward({});
        ddp.count_samples(4);
        ddp.backward({}, {});
        seen.push_back(module.gradient_of(0));
      }
    });
    if (me == 0) {
      EXPECT_EQ(seen, (std::vector<float>{3, 3}));
    }
  });
}

TEST(Join, MayFailOnAllRanksWhenOneRunsOut) {
  const auto texts = refusals(2, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    Ddp ddp(module, rank.group, {});
    epoch(ddp, module, {.throw_on_early_termination = true}, rank.group.rank() == 0 ? 3 : 1);
  });
  const std::string advice =
      "; give every rank the same number of batches, or unset throw_on_early_termination";
  EXPECT_EQ(texts[0], "rank 0/2 [sim] join: another rank has run out of input" + advice);
  EXPECT_EQ(texts[1],
            "rank 1/2 [sim] join: this rank has run out of input, others have not" + advice);
}

TEST(Join, DoesNotFailWhenAllRunOutTogether) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    Ddp ddp(module, rank.group, {});
    for (int number = 0; number < 2; ++number) {
      EXPECT_EQ(epoch(ddp, module, {.throw_on_early_termination = true}, 2).size(), 2U);
    }
  });
}

TEST(Join, MayBeSwitchedOff) {
  run_ranks(2, [](RankContext& rank) {
    std::vector<std::string> log;
    RecordingGroup group(rank.group, log);
    ScriptedModule module(1, 1);
    Ddp ddp(module, group, {});
    log.clear();
    epoch(ddp, module, {.enable = false}, 1);
    EXPECT_EQ(log, (std::vector<std::string>{"bucket 0"}));
  });
}

TEST(Join, AnExceptionInTheBodyComesOutAndEndsTheEpochOfItsPeers) {
  bool told = false;
  EXPECT_THROW(run_ranks(2,
                         [&](RankContext& rank) {
                           ScriptedModule module(1, 1);
                           Ddp ddp(module, rank.group, {});
                           try {
                             ddp.join({}, [&] {
                               step(ddp);
                               if (rank.group.rank() == 1) throw std::domain_error("rank 1");
                               step(ddp);
                             });
                           } catch (const CommError& error) {
                             told = error.kind() == CommErrorKind::kPeerLost;
                           }
                         }),
               std::domain_error);
  EXPECT_TRUE(told);
}

TEST(Join, NeedsAFirstStepOfEachRankWithAStaticGraph) {
  std::string text;
  run_ranks(2, [&](RankContext& rank) {
    ScriptedModule module(1, 1);
    Ddp ddp(module, rank.group, {.static_graph = true});
    try {
      epoch(ddp, module, {}, rank.group.rank());
    } catch (const ConfigError& error) {
      text = error.what();
    } catch (const CommError&) {  // the peer, which was in that step
    }
  });
  EXPECT_EQ(text,
            "rank 0/2 [sim] DistributedDataParallel: with static_graph a rank needs input for at "
            "least one step before it may run out of it");
}

}  // namespace
}  // namespace ddproof
