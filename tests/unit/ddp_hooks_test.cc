// Communication hooks: what each makes of the gradients (SEMANTICS section 6; PITFALLS P59).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/ddp/hooks/compression_hook.h"
#include "reference/ddp/hooks/post_local_sgd.h"
#include "reference/ddp/hooks/power_sgd.h"
#include "tests/support/refusal.h"
#include "tests/unit/scripted_module.h"

namespace ddproof {
namespace {

using Ddp = DistributedDataParallel<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What `hook` makes of the same gradient on two ranks, before and after the rebuild of buckets.
template <class Hook>
float reduced(float gradient, const std::string& backend = "sim") {
  float result = 0;
  run_ranks(
      2,
      [&](RankContext& rank) {
        ScriptedModule module(3, 5);
        module.gradient = [&](std::size_t) { return gradient; };
        Ddp ddp(module, rank.group, {});
        ddp.register_comm_hook(std::make_unique<Hook>());
        step(ddp);
        const float first = module.gradient_of(0);
        step(ddp);
        EXPECT_EQ(module.gradient_of(2), first);
        result = first;
      },
      backend);
  return result;
}

TEST(CommHooks, AllReduceIsTheReducersOwnMean) {
  for (const char* backend : {"sim", "gloo"}) {
    run_ranks(
        3,
        [](RankContext& rank) {
          ScriptedModule module(2, 70);
          module.gradient = [&](std::size_t i) {
            return 0.1F * static_cast<float>(i + 1) * (1.0F + rank.group.rank());
          };
          float expected = 0;
          {
            Ddp plain(module, rank.group, {});
            step(plain);
            expected = module.gradient_of(1);
          }
          Ddp ddp(module, rank.group, {});
          ddp.register_comm_hook(std::make_unique<AllReduceHook<float>>());
          step(ddp);
          // Three products and two sums in another order, twice: 6 roundings of at most 0.4.
          EXPECT_NEAR(module.gradient_of(1), expected, 6 * 0x1p-24F * 0.4F);
        },
        backend);
  }
}

TEST(CommHooks, HalfPrecisionRoundsBeforeItDivides) {
  for (const char* backend : {"sim", "gloo"}) {
    EXPECT_EQ(reduced<Float16Compression>(60000, backend), 60000.0F);
    EXPECT_EQ(reduced<Float16Compression>(120000, backend), kInfinity);
    EXPECT_EQ(reduced<Float16Compression>(1e-7F, backend), 0x1p-23F);  // 1.19e-7
    EXPECT_EQ(reduced<Float16Compression>(6e-8F, backend), 0.0F);
  }
}

TEST(CommHooks, BrainFloatKeepsTheRangeAndLosesDigits) {
  EXPECT_EQ(reduced<BFloat16Compression>(120000), 119808.0F);  // 8 bits of precision
  EXPECT_EQ(reduced<BFloat16Compression>(6e-8F), static_cast<float>(BFloat16(6e-8F)));
}

// A user's hook: the largest rank's gradients, and nothing is averaged.
class TakeTheLast final : public CommHook<float> {
 public:
  std::string name() const override { return "take_the_last"; }
  void start(const GradientBucket<float>& bucket, ProcessGroup& group) override {
    work_ = group.broadcast(bucket.data.buffer(), group.size() - 1);
  }
  void finish(const GradientBucket<float>&, ProcessGroup&) override { work_->wait(); }

 private:
  WorkPtr work_;
};

// What a hook is told of each bucket of a step, in order.
class Notes final : public CommHook<float> {
 public:
  explicit Notes(std::vector<std::string>& notes) : notes_(notes) {}
  std::string name() const override { return "notes"; }
  void start(const GradientBucket<float>& bucket, ProcessGroup&) override { note("start", bucket); }
  void finish(const GradientBucket<float>& bucket, ProcessGroup&) override {
    note("finish", bucket);
  }

 private:
  void note(const std::string& what, const GradientBucket<float>& bucket) {
    notes_.push_back(what + " " + std::to_string(bucket.index) + ":");
    for (const Parameter<float>* parameter : bucket.parameters) {
      notes_.back() += " " + parameter->name;
    }
    if (bucket.is_last) notes_.back() += ", last";
  }
  std::vector<std::string>& notes_;
};

TEST(CommHooks, GetTheBucketsInOrderAndKnowTheLast) {
  run_ranks(2, [](RankContext& rank) {
    std::vector<std::string> notes;
    ScriptedModule module(8, 65536);
    Ddp ddp(module, rank.group, {});
    ddp.register_comm_hook(std::make_unique<Notes>(notes));
    step(ddp);
    notes.clear();
    step(ddp);
    EXPECT_EQ(notes,
              (std::vector<std::string>{"start 0: p7 p6 p5 p4", "start 1: p3 p2 p1 p0, last",
                                        "finish 0: p7 p6 p5 p4", "finish 1: p3 p2 p1 p0, last"}));
  });
}

class LeaveAlone final : public CommHook<float> {
 public:
  std::string name() const override { return "noop"; }
  void start(const GradientBucket<float>&, ProcessGroup&) override {}
  void finish(const GradientBucket<float>&, ProcessGroup&) override {}
};

TEST(CommHooks, OfAUserSeeTheUndividedGradientsAndDecide) {
  run_ranks(3, [](RankContext& rank) {
    const auto own = static_cast<float>(1 + rank.group.rank());
    ScriptedModule module(2, 2);
    module.gradient = [&](std::size_t) { return own; };
    {
      Ddp ddp(module, rank.group, {});
      ddp.register_comm_hook(std::make_unique<TakeTheLast>());
      step(ddp);
      EXPECT_EQ(module.gradient_of(0), 3.0F);
      EXPECT_EQ(ddp.logging_data().strings.at("comm_hook"), "take_the_last");
    }
    Ddp ddp(module, rank.group, {});
    ddp.register_comm_hook(std::make_unique<LeaveAlone>());
    step(ddp);
    EXPECT_EQ(module.gradient_of(0), own);
  });
}

TEST(CommHooks, AMissingGradientStillFailsTheSameStepOnEveryRank) {
  const auto texts = refusals(2, [](RankContext& rank) {
    ScriptedModule module(2, 1);
    Ddp ddp(module, rank.group, {});
    ddp.register_comm_hook(std::make_unique<Float16Compression>());
    module.skip = [&](std::size_t i) { return rank.group.rank() == 1 && i == 0; };
    step(ddp);
  });
  EXPECT_EQ(texts,
            said_by_all(2,
                        "DistributedDataParallel: no gradient in this step for p0 on rank 1 (1 "
                        "missing over all ranks); every parameter must take part in every step"));
}

TEST(CommHooks, OneToAWrapperAndBeforeItsFirstBackward) {
  const auto text = [](const DdpOptions& options, const std::function<void(Ddp&)>& body) {
    return refusals(1, [&](RankContext& rank) {
      ScriptedModule module(1, 1);
      Ddp ddp(module, rank.group, options);
      body(ddp);
      ddp.register_comm_hook(std::make_unique<Float16Compression>());
    })[0];
  };
  const std::string who = "rank 0/1 [sim] DistributedDataParallel: ";
  EXPECT_EQ(
      text({}, [](Ddp& ddp) { ddp.register_comm_hook(std::make_unique<Float16Compression>()); }),
      who + "has the hook fp16_compress already; one wrapper takes one hook");
  EXPECT_EQ(text({}, [](Ddp& ddp) { step(ddp); }),
            who + "register the hook fp16_compress before the first backward");
  EXPECT_EQ(text({.averaging = Averaging::kSamples}, [](Ddp&) {}),
            who + "the hook fp16_compress averages by itself; leave Averaging::kWorld");
}

TEST(CommHooks, OnOneRankOnlyAreNamed) {
  std::vector<std::string> texts(2);
  run_ranks(2, [&](RankContext& rank) {
    ScriptedModule module(1, 1);
    Ddp ddp(module, rank.group, {});
    if (rank.group.rank() == 1) ddp.register_comm_hook(std::make_unique<Float16Compression>());
    try {
      step(ddp);
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommErrorKind::kMismatch);
      texts[static_cast<std::size_t>(rank.group.rank())] = error.what();
    }
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("bucket 0 of fp16_compress"), std::string::npos) << text;
  }
}

TEST(PostLocalSgd, AveragesWithinAPartFromItsStartOn) {
  run_ranks(4, [](RankContext& rank) {
    const int me = rank.group.rank();
    const auto node = rank.group.split(me / 2, me);
    ScriptedModule module(2, 1);
    module.gradient = [&](std::size_t) { return static_cast<float>(me); };
    Ddp ddp(module, rank.group, {});
    ddp.register_comm_hook(std::make_unique<PostLocalSgdHook>(node.get(), 2));
    std::vector<float> seen;
    for (int i = 0; i < 4; ++i) {
      step(ddp);
      seen.push_back(module.gradient_of(1));
    }
    const float part = me < 2 ? 0.5F : 2.5F;
    EXPECT_EQ(seen, (std::vector<float>{1.5F, 1.5F, part, part}));
  });
}

TEST(PostLocalSgd, MayLeaveGradientsAlone) {
  run_ranks(2, [](RankContext& rank) {
    ScriptedModule module(2, 1);
    module.gradient = [&](std::size_t) { return static_cast<float>(rank.group.rank()); };
    Ddp ddp(module, rank.group, {});
    ddp.register_comm_hook(std::make_unique<PostLocalSgdHook>(nullptr, 0));
    step(ddp);
    EXPECT_EQ(module.gradient_of(0), static_cast<float>(rank.group.rank()));
  });
}

TEST(PeriodicModelAverager, AveragesEachPeriodAfterTheWarmup) {
  run_ranks(2, [](RankContext& rank) {
    const auto me = static_cast<float>(rank.group.rank());
    ScriptedModule module(1, 1);
    float& value = module.parameters()[0]->value.span()[0];
    PeriodicModelAverager averager(rank.group, 2, 1);
    std::vector<bool> averaged;
    for (int i = 0; i < 5; ++i) {
      value = me;
      averager.average_parameters(module.parameters());
      averaged.push_back(value == 0.5F);
    }
    EXPECT_EQ(averaged, (std::vector<bool>{false, true, false, true, false}));
  });
}

TEST(PostLocalSgd, SettingsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(refusal_of([] { PostLocalSgdHook(nullptr, -1); }),
            "post_localSGD: start step -1, expected 0 or more");
  run_ranks(1, [](RankContext& rank) {
    EXPECT_EQ(refusal_of([&] { PeriodicModelAverager(rank.group, 0); }),
              "periodic model averager: period 0, expected at least 1");
    EXPECT_EQ(refusal_of([&] { PeriodicModelAverager(rank.group, 1, -1); }),
              "periodic model averager: warmup steps -1, expected at least 0");
  });
}

// A model of one 8 x 6 matrix of rank one, (row + 1) (column + 1), and one vector; times a factor.
class RankOneModule : public ScriptedModule {
 public:
  explicit RankOneModule(float factor) : ScriptedModule(0, 0) {
    add("matrix", {8, 6});
    add("vector", {5});
    gradient = [factor](std::size_t) { return factor; };
  }
  const Tensor<float>& backward(const Tensor<float>& output_gradient,
                                const GradientReady<float>& ready) override {
    return ScriptedModule::backward(output_gradient, [&](Parameter<float>& parameter) {
      for (std::int64_t i = 0; parameter.name == "matrix" && i < 48; ++i) {
        parameter.gradient.span()[static_cast<std::size_t>(i)] *=
            static_cast<float>((i / 6 + 1) * (i % 6 + 1));
      }
      ready(parameter);
    });
  }
};

PowerSgdOptions at_once(std::int64_t rank) {
  return {.rank = rank,
          .start_step = 0,
          .min_compression_rate = 1,
          .use_error_feedback = false,
          .warm_start = false};
}

// |error| of a mean over ranks that went through P and Q, each a sum of at most 8 products, with an
// orthonormal column between: gamma of some thirty roundings (Higham 2002, section 3.1).
constexpr float kPowerSgdError = 32 * 0x1p-24F;

TEST(PowerSgd, KeepsAMatrixOfItsRankAndSendsTwoThinOnes) {
  run_ranks(2, [](RankContext& rank) {
    RankOneModule module(rank.group.rank() == 0 ? 1.0F : 3.0F);
    Ddp ddp(module, rank.group, {});
    auto hook = std::make_unique<PowerSgdHook>(at_once(1));
    const PowerSgdHook& seen = *hook;
    ddp.register_comm_hook(std::move(hook));
    step(ddp);
    const auto matrix = module.parameters()[0]->gradient.span();
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      const float expected = 2.0F * static_cast<float>((i / 6 + 1) * (i % 6 + 1));
      EXPECT_NEAR(matrix[i], expected, expected * kPowerSgdError) << i;
    }
    for (const float value : module.parameters()[1]->gradient.span()) EXPECT_EQ(value, 2.0F);
    EXPECT_EQ(seen.elements_uncompressed(), 48 + 5);
    EXPECT_EQ(seen.elements_sent(), 8 + 6 + 5);
  });
}

TEST(PowerSgd, BeginsAtItsStep) {
  run_ranks(2, [](RankContext& rank) {
    RankOneModule module(1);
    Ddp ddp(module, rank.group, {});
    auto hook =
        std::make_unique<PowerSgdHook>(PowerSgdOptions{.start_step = 2, .min_compression_rate = 1});
    const PowerSgdHook& seen = *hook;
    ddp.register_comm_hook(std::move(hook));
    std::vector<std::int64_t> sent;
    for (int i = 0; i < 4; ++i) {
      step(ddp);
      sent.push_back(seen.elements_sent());
    }
    EXPECT_EQ(sent, (std::vector<std::int64_t>{53, 106, 106 + 19, 106 + 38}));
  });
}

TEST(PowerSgd, CompressesWhatIsWorthIt) {
  run_ranks(1, [](RankContext& rank) {
    // 8 x 6 against (8 + 6) x rate: 48 < 56 at rate 4, so nothing is compressed.
    RankOneModule module(1);
    Ddp ddp(module, rank.group, {});
    PowerSgdOptions options = at_once(1);
    options.min_compression_rate = 4;
    auto hook = std::make_unique<PowerSgdHook>(options);
    const PowerSgdHook& seen = *hook;
    ddp.register_comm_hook(std::move(hook));
    step(ddp);
    EXPECT_EQ(seen.elements_sent(), 53);
  });
}

// Gradients of full rank: what is lost in a step comes later, so that the sum over steps follows
// the sum of the true means; without feedback it stays behind for ever.
TEST(PowerSgd, ErrorFeedbackSendsLaterWhatWasLost) {
  const auto distance = [](bool feedback) {
    float worst = 0;
    run_ranks(2, [&](RankContext& rank) {
      ScriptedModule module(0, 0);
      module.add("matrix", {4, 4});
      const auto fill = [&](Parameter<float>& parameter) {
        const auto values = parameter.gradient.span();
        std::ranges::fill(values, 0.0F);
        for (std::size_t i = 0; i < 4; ++i) values[i * 5] = 4.0F - i;  // a diagonal
      };
      Ddp ddp(module, rank.group, {});
      ddp.register_comm_hook(std::make_unique<PowerSgdHook>(PowerSgdOptions{
          .start_step = 2, .min_compression_rate = 0.5, .use_error_feedback = feedback}));
      std::vector<float> sum(16);
      constexpr int kSteps = 60;
      for (int i = 0; i < kSteps; ++i) {
        ddp.forward({});
        ddp.backward({}, fill);
        const auto values = module.parameters()[0]->gradient.span();
        for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += values[at];
      }
      worst = std::fabs(sum[15] - kSteps * 1.0F);  // the weakest direction
    });
    return worst;
  };
  EXPECT_LT(2 * distance(true), distance(false));
}

TEST(PowerSgd, AZeroGradientStaysZero) {
  run_ranks(2, [](RankContext& rank) {
    RankOneModule module(0);
    Ddp ddp(module, rank.group, {});
    ddp.register_comm_hook(std::make_unique<PowerSgdHook>(at_once(2)));
    step(ddp);
    for (const float value : module.parameters()[0]->gradient.span()) EXPECT_EQ(value, 0.0F);
  });
}

TEST(PowerSgd, RanksHoldTheSameBits) {
  run_ranks(4, [](RankContext& rank) {
    RankOneModule module(0.1F + 0.37F * static_cast<float>(rank.group.rank()));
    Ddp ddp(module, rank.group, {});
    ddp.register_comm_hook(std::make_unique<PowerSgdHook>(at_once(2)));
    for (int i = 0; i < 3; ++i) step(ddp);
    std::vector<float> mine = to_host(module.parameters()[0]->gradient);
    const std::vector<float> own = mine;
    rank.group.broadcast(Buffer::of(mine), 0)->wait();
    EXPECT_EQ(own, mine);
  });
}

TEST(PowerSgd, SettingsThatMakeNoSenseAreRefused) {
  const std::string rebuilt =
      "powerSGD: start step 1, expected above 1 with error feedback or warm start: buckets are "
      "rebuilt after the first step";
  EXPECT_EQ(refusal_of([] { PowerSgdHook({.start_step = 1}); }), rebuilt);
  EXPECT_EQ(refusal_of([] { PowerSgdHook({.start_step = 1, .use_error_feedback = false}); }),
            rebuilt);
  EXPECT_EQ(refusal_of([] { PowerSgdHook({.rank = 0}); }), "powerSGD: rank 0, expected at least 1");
  EXPECT_EQ(refusal_of([] { PowerSgdHook({.start_step = -1}); }),
            "powerSGD: start step -1, expected 0 or more");
  EXPECT_EQ(refusal_of([] { PowerSgdHook({.min_compression_rate = 0}); }),
            "powerSGD: the least compression rate must be above 0");
  EXPECT_EQ(refusal_of([] { PowerSgdHook({.orthogonalization_epsilon = -1}); }),
            "powerSGD: the epsilon must not be negative");
}

}  // namespace
}  // namespace ddproof
