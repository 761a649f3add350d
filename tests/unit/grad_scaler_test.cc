// Loss scaling: PyTorch's rules for the scale, and one decision for all ranks.
#include "reference/optim/grad_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/registry/registry.h"
#include "reference/optim/sgd.h"
#include "reference/train/state_digest.h"
#include "tests/property/world_backends.h"
#include "tests/unit/optimizer_problem.h"

namespace ddproof {
namespace {

// One step of a parameter with this gradient, before unscaling. True when it is made.
bool step(GradScaler& scaler, Problem<float>& problem, float gradient,
          ProcessGroup* group = nullptr) {
  problem.parameter.gradient.span()[0] = gradient;
  const bool makes = scaler.unscale<float>({&problem.parameter}, group);
  scaler.update();
  return makes;
}

TEST(GradScaler, BeginsAsPyTorchs) {
  const GradScaler scaler({});
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_EQ(scaler.state(), (GradScaler::State{65536, 0}));
}

TEST(GradScaler, UnscalesTheGradientsThatThereAre) {
  Problem<float> problem({1.0f, 2.0f}), skipped({1.0f});
  problem.parameter.gradient.span()[0] = 65536 * 3.0f;
  problem.parameter.gradient.span()[1] = -65536 * 0.25f;
  skipped.parameter.gradient.span()[0] = std::numeric_limits<float>::infinity();
  skipped.parameter.has_gradient = false;
  GradScaler scaler({});
  EXPECT_TRUE(scaler.unscale<float>({&problem.parameter, &skipped.parameter}, nullptr));
  EXPECT_EQ(values<float>(problem.parameter.gradient.span()), (std::vector<float>{3, -0.25f}));
}

TEST(GradScaler, ALargeGradientThatIsFiniteIsStepped) {
  Problem<float> problem({1.0f});
  GradScaler scaler({});
  EXPECT_TRUE(step(scaler, problem, std::numeric_limits<float>::max()));  // its square is not
}

// By the rule of torch.cuda.amp.GradScaler, which runs on GPUs alone.
TEST(GradScaler, GrowsAfterStepsInARowAndShrinksAtOnce) {
  Problem<float> problem({1.0f});
  GradScaler scaler({.init_scale = 4, .growth_interval = 3});
  const float bad[] = {std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN()};
  std::vector<double> scales;
  for (const bool good : {true, true, false, true, true, true, true, true, false, false}) {
    EXPECT_EQ(step(scaler, problem, good ? 1.0f : bad[scales.size() % 3]), good);
    scales.push_back(scaler.scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{4, 4, 2, 2, 2, 4, 4, 4, 2, 1}));
}

TEST(GradScaler, GrowsNoFurtherThanFloat) {
  Problem<float> problem({1.0f});
  GradScaler scaler({.init_scale = 0x1p125, .growth_interval = 1});
  step(scaler, problem, 1.0f);
  EXPECT_EQ(scaler.scale(), 0x1p126);
  step(scaler, problem, 1.0f);
  EXPECT_EQ(scaler.scale(), 0x1p126);
}

TEST(GradScaler, ALoadedStateGoesOn) {
  Problem<float> problem({1.0f});
  const GradScalerOptions options{.init_scale = 4, .growth_interval = 3};
  GradScaler whole(options), resumed(options);
  step(whole, problem, 1.0f);
  step(whole, problem, 1.0f);
  resumed.load_state(whole.state());
  step(resumed, problem, 1.0f);
  EXPECT_EQ(resumed.scale(), 8);
}

template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(GradScaler, ErrorsSayWhatIsExpected) {
  const auto made = [](const GradScalerOptions& options) {
    return error_of([&] { GradScaler scaler(options); });
  };
  EXPECT_EQ(made({.init_scale = 0}), "GradScaler init_scale 0, expected 2^-126 to 2^126");
  EXPECT_EQ(made({.growth_factor = 1}),
            "GradScaler growth_factor 1, expected a finite number above 1");
  EXPECT_EQ(made({.backoff_factor = 1}),
            "GradScaler backoff_factor 1, expected above 0 and below 1");
  EXPECT_EQ(made({.growth_interval = 0}), "GradScaler growth_interval 0, expected at least 1");
  GradScaler scaler({.growth_interval = 5});
  EXPECT_EQ(error_of([&] {
              scaler.load_state({NAN, 0});
            }),
            "GradScaler scale nan, expected 2^-126 to 2^126");
  EXPECT_EQ(error_of([&] {
              scaler.load_state({1, 5});
            }),
            "GradScaler growth_tracker 5, expected 0 to 4");
  EXPECT_EQ(error_of([&] { scaler.update(); }),
            "GradScaler: update() without unscale() before; call each once a step");
  scaler.unscale<float>({}, nullptr);
  EXPECT_EQ(error_of([&] { scaler.unscale<float>({}, nullptr); }),
            "GradScaler: unscale() twice without update() between; call each once a step");
}

TEST(GradScaler, WhereNoScaleHelpsItSaysSo) {
  Problem<float> problem({1.0f});
  GradScaler scaler({.init_scale = 0x1p-126});
  EXPECT_EQ(error_of([&] { step(scaler, problem, NAN); }),
            "GradScaler: gradients are not finite at the scale 1.1754943508222875e-38 either; "
            "lower the learning rate, or look at the data");
}

// P27: rank 1's gradient overflows at step 3, before anything is reduced; both skip that step, and
// their scales stay equal.
TEST(GradScaler, AnOverflowOnOneRankIsSkippedByAll) {
  for (const std::string& backend : world_backends()) {
    std::vector<std::vector<bool>> made(2);
    std::vector<double> scales(2);
    std::vector<std::uint64_t> digests(2);
    make_backend(backend)->run_world({.world_size = 2, .seed = 1}, [&](RankContext& rank) {
      const auto me = static_cast<std::size_t>(rank.group.rank());
      Problem<float> problem({1.0f});
      Sgd<float> sgd({&problem.parameter}, {.lr = 0.5, .momentum = 0.9});
      GradScaler scaler({});
      std::vector<bool> steps;
      for (int number = 1; number <= 4; ++number) {
        const bool overflows = me == 1 && number == 3;
        problem.parameter.gradient.span()[0] = overflows
                                                   ? std::numeric_limits<float>::infinity()
                                                   : static_cast<float>(scaler.scale() * number);
        steps.push_back(scaler.unscale<float>({&problem.parameter}, &rank.group));
        if (steps.back()) sgd.step();
        scaler.update();
      }
      made[me] = steps;
      scales[me] = scaler.scale();
      digests[me] = state_digest(sgd);
    });
    EXPECT_EQ(made[0], (std::vector<bool>{true, true, false, true})) << backend;
    EXPECT_EQ(made[1], made[0]) << backend;
    EXPECT_EQ(scales, (std::vector<double>{32768, 32768})) << backend;
    EXPECT_EQ(digests[0], digests[1]) << backend;
  }
}

}  // namespace
}  // namespace ddproof
