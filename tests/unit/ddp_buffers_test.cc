// Buffers of the model: which rank's everybody has, and when (SEMANTICS section 4; PITFALLS P57).
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/unit/scripted_module.h"

namespace ddproof {
namespace {

// A running mean, as batch norm keeps it: each forward moves a tenth of the way to the rank's mean.
class RunningMean : public ScriptedModule {
 public:
  explicit RunningMean(const RankContext& rank) : ScriptedModule(1, 1) {
    add_buffer("bn.running_mean");
    const float mean = rank.group.rank() == 0 ? 2.0F : 22.0F;
    on_forward = [this, mean] { buffer(0) = 0.9F * buffer(0) + 0.1F * mean; };
  }
};

// The running mean of each of two ranks after each of three steps.
using History = std::vector<std::vector<float>>;

History history(const DdpOptions& options,
                const std::function<void(DistributedDataParallel<float>&, int)>& one_step) {
  History result(2);
  run_ranks(2, [&](RankContext& rank) {
    RunningMean module(rank);
    DistributedDataParallel<float> ddp(module, rank.group, options);
    for (int i = 0; i < 3; ++i) {
      one_step(ddp, i);
      result[static_cast<std::size_t>(rank.group.rank())].push_back(module.buffer(0));
    }
  });
  return result;
}

float towards(float mean, float from) { return 0.9F * from + 0.1F * mean; }

TEST(Buffers, AreRankZerosWhenAStepBeginsAndDifferWhenItEnds) {
  const History seen = history({}, [](auto& ddp, int) { step(ddp); });
  const float first = towards(2, 0);
  const float second = towards(2, first);
  EXPECT_EQ(seen[0], (std::vector<float>{first, second, towards(2, second)}));  // 0.2, 0.38
  EXPECT_EQ(seen[1],
            (std::vector<float>{towards(22, 0), towards(22, first), towards(22, second)}));  // 2.38
}

TEST(Buffers, StayEachRanksOwnWhenAskedTo) {
  const float first = towards(22, 0);
  const std::vector<float> own{first, towards(22, first), towards(22, towards(22, first))};
  const auto one_step = [](auto& ddp, int) { step(ddp); };
  EXPECT_EQ(history({.broadcast_buffers = false}, one_step)[1], own);  // 2.2, 4.18
  EXPECT_EQ(history({.parameters_to_ignore = {"bn.running_mean"}}, one_step)[1], own);
}

TEST(Buffers, AreNotSentAfterAStepThatWasNotReduced) {
  const History seen = history({}, [](auto& ddp, int i) {
    std::optional<DistributedDataParallel<float>::NoSync> accumulating;
    if (i == 0) accumulating.emplace(ddp);
    step(ddp);
  });
  const float first = towards(22, 0);
  EXPECT_EQ(seen[1][1], towards(22, first));                      // its own, not sent
  EXPECT_EQ(seen[1][2], towards(22, towards(2, towards(2, 0))));  // rank 0's, sent
}

TEST(Buffers, OfAllRanksStartAsRankZeros) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    module.add_buffer("bn.running_var");
    module.buffer(0) = static_cast<float>(5 + rank.group.rank());
    DistributedDataParallel<float> ddp(module, rank.group, {});
    EXPECT_EQ(module.buffer(0), 5.0F);
  });
}

TEST(Buffers, EvaluationThroughTheWrapperSendsThemOnce) {
  run_ranks(2, [](RankContext& rank) {
    std::vector<std::string> log;
    RecordingGroup group(rank.group, log);
    RunningMean module(rank);
    DistributedDataParallel<float> ddp(module, group, {});
    step(ddp);
    log.clear();
    ddp.set_training(false);
    ddp.forward({});
    ddp.forward({});
    EXPECT_EQ(log, (std::vector<std::string>{"buffers for evaluation"}));
  });
}

TEST(Buffers, EvaluationOnRankZeroAloneIsNamedOnEveryRank) {
  std::vector<std::string> texts(3);
  run_ranks(3, [&](RankContext& rank) {
    RunningMean module(rank);
    DistributedDataParallel<float> ddp(module, rank.group, {});
    step(ddp);
    step(ddp);
    try {
      if (rank.group.rank() == 0) {
        ddp.set_training(false);
        ddp.forward({});
        ddp.set_training(true);
      }
      step(ddp);
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommErrorKind::kMismatch);
      texts[static_cast<std::size_t>(rank.group.rank())] = error.what();
    }
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("buffers for evaluation"), std::string::npos) << text;
  }
}

TEST(Buffers, ThatDifferAreRefusedOnEveryRank) {
  const auto texts = refusals(2, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    module.add_buffer(rank.group.rank() == 0 ? "bn1.running_mean" : "bn2.running_mean");
    DistributedDataParallel<float> ddp(module, rank.group, {});
  });
  EXPECT_EQ(texts,
            said_by_all(2,
                        "DistributedDataParallel: the model differs between ranks: parameter 1 is "
                        "bn1.running_mean float32 buffer [1] on rank 0 and bn2.running_mean "
                        "float32 buffer [1] on rank 1; build the same model, in the same order, "
                        "on every rank"));
}

TEST(ParametersToIgnore, KeepTheirRanksValuesAndGradients) {
  run_ranks(2, [](RankContext& rank) {
    const auto own = static_cast<float>(rank.group.rank());
    ScriptedModule module(2, 1);
    module.parameters()[1]->value.span()[0] = own;
    module.gradient = [&](std::size_t) { return own; };
    DistributedDataParallel<float> ddp(module, rank.group, {.parameters_to_ignore = {"p1"}});
    for (int repeat = 0; repeat < 2; ++repeat) {
      step(ddp);
      EXPECT_EQ(module.gradient_of(0), 0.5F);
      EXPECT_EQ(module.gradient_of(1), own);
      EXPECT_EQ(module.parameters()[1]->value.span()[0], own);
    }
  });
}

TEST(ParametersToIgnore, AreNamesOfTheModule) {
  const auto texts = refusals(1, [](RankContext& rank) {
    ScriptedModule module(1, 1);
    module.add_buffer("running_mean");
    DistributedDataParallel<float> ddp(module, rank.group,
                                       {.parameters_to_ignore = {"runing_mean"}});
  });
  EXPECT_EQ(texts[0],
            "DistributedDataParallel: parameters_to_ignore has runing_mean, which the module has "
            "not; did you mean \"running_mean\"?");
}

}  // namespace
}  // namespace ddproof
