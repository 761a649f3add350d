// SGD against the outputs of PyTorch 1.13.1, bit for bit, and its rules one by one.
#include "reference/optim/sgd.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "backends/api/error.h"
#include "reference/compute/sgd_kernel.h"
#include "tests/unit/optimizer_problem.h"

namespace ddproof {
namespace {

using nlohmann::json;

SgdOptions sgd_options(const json& opt) {
  return {.lr = opt.value("lr", 0.01),
          .momentum = opt.value("momentum", 0.0),
          .dampening = opt.value("dampening", 0.0),
          .weight_decay = opt.value("weight_decay", 0.0),
          .nesterov = opt.value("nesterov", false)};
}

// The problem of sgd.json: gradient a * (w - b), in the type itself.
template <class T>
void expect_golden(const json& test) {
  const T a[] = {T(1.0), T(0.5), T(2.0), T(0.25), T(1.5)};
  const T b[] = {T(0.3), T(-0.7), T(1.1), T(2.0), T(-1.3)};
  // ddproof always minimises. Maximising f is minimising -f, which turns the sign of the gradient.
  const T sign = test["opt"].value("maximize", false) ? T(-1) : T(1);
  Problem<T> problem({T(1.0), T(-2.0), T(0.5), T(4.0), T(0.0)});
  Sgd<T> sgd({&problem.parameter}, sgd_options(test["opt"]));
  for (const json& expected : test["w_after_step"]) {
    problem.set_gradient(a, b, sign);
    sgd.step();
    ASSERT_EQ(values<T>(problem.parameter.value.span()), from_hex<T>(expected))
        << test["dtype"] << test["opt"];
  }
  const std::vector<Tensor<T>>& state = sgd.state()[0].tensors;
  ASSERT_EQ(!state.empty(), test.contains("momentum_buffer_final"));
  if (!state.empty()) {
    EXPECT_EQ(values<T>(state[0].span()), from_hex<T>(test["momentum_buffer_final"]));
  }
}

TEST(SgdGolden, EveryCaseEqualsPyTorchBitForBit) {
  const json golden = read_golden("sgd.json");
  ASSERT_EQ(golden["cases"].size(), 20u);
  for (const json& test : golden["cases"]) {
    if (test["dtype"] == "float64") {
      expect_golden<double>(test);
    } else {
      expect_golden<float>(test);
    }
  }
}

TEST(SgdGolden, RefusesWhatPyTorchRefuses) {
  const json golden = read_golden("sgd.json");
  ASSERT_EQ(golden["errors"].size(), 5u);
  for (const json& test : golden["errors"]) {
    EXPECT_THROW(validate(sgd_options(test["opt"])), ConfigError) << test;
  }
}

std::string sgd_error(const SgdOptions& options) {
  try {
    validate(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Sgd, ErrorsNameTheOptionItsValueAndTheRange) {
  EXPECT_EQ(sgd_error({.lr = -1}), "SGD lr -1: expected a finite number, at least 0");
  EXPECT_EQ(sgd_error({.momentum = -0.1}),
            "SGD momentum -0.1: expected a finite number, at least 0");
  EXPECT_EQ(sgd_error({.weight_decay = -0.1}),
            "SGD weight_decay -0.1: expected a finite number, at least 0");
  EXPECT_EQ(sgd_error({.lr = std::numeric_limits<double>::quiet_NaN()}),
            "SGD lr nan: expected a finite number, at least 0");
  EXPECT_EQ(sgd_error({.dampening = std::numeric_limits<double>::infinity()}),
            "SGD dampening inf: expected a finite number");
  EXPECT_EQ(sgd_error({.momentum = 0.9, .dampening = 0.1, .nesterov = true}),
            "SGD nesterov with momentum 0.9 and dampening 0.1: expected a momentum above 0 and "
            "dampening 0");
  EXPECT_EQ(sgd_error({.lr = 0}), "");
}

TEST(Sgd, NeedsAParameter) { EXPECT_THROW(Sgd<float>({}, SgdOptions{}), ConfigError); }

TEST(Sgd, SkipsParametersWithoutAGradient) {
  Problem<float> reached({1.0f});
  Problem<float> skipped({1.0f});
  skipped.parameter.has_gradient = false;
  Sgd<float> sgd({&reached.parameter, &skipped.parameter},
                 {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.1});
  sgd.step();
  EXPECT_NE(reached.parameter.value.span()[0], 1.0f);
  EXPECT_EQ(skipped.parameter.value.span()[0], 1.0f);
  EXPECT_TRUE(sgd.state()[1].tensors.empty());
}

TEST(Sgd, TheFirstMomentumIsTheGradientWithoutDampening) {
  Problem<float> problem({1.0f});
  problem.parameter.gradient.span()[0] = 2.0f;
  Sgd<float> sgd({&problem.parameter}, {.lr = 0.5, .momentum = 0.5, .dampening = 0.5});
  sgd.step();
  EXPECT_EQ(sgd.state()[0].tensors[0].span()[0], 2.0f);
  sgd.step();
  EXPECT_EQ(sgd.state()[0].tensors[0].span()[0], 2.0f);  // 0.5 * 2 + 0.5 * 2
  sgd.load_state(std::vector<ParameterState<float>>(1));
  EXPECT_TRUE(sgd.state()[0].tensors.empty());
}

// The processor's vector loop and the plain loop must agree at every length, tails included.
TEST(Sgd, VectorsGiveTheBitsOfThePlainLoop) {
  const SgdFactors<float> factors{
      .weight_decay = 0.0005f, .momentum = 0.9f, .one_minus_dampening = 0.7f, .minus_lr = -0.1f};
  using Momentum = SgdRule::Momentum;
  for (const Momentum momentum : {Momentum::kNone, Momentum::kFirst, Momentum::kRunning}) {
    const SgdRule rule{.decays = true, .momentum = momentum, .nesterov = true};
    for (std::size_t count = 0; count < 70; ++count) {
      std::vector<float> w(count), g(count), v(count);
      for (std::size_t i = 0; i < count; ++i) {
        w[i] = 1.0f / static_cast<float>(i + 1);
        g[i] = -0.3f * static_cast<float>(i);
        v[i] = 0.7f + static_cast<float>(i) / 3.0f;
      }
      std::vector<float> plain_w = w, plain_v = v;
      internal::sgd_loops(rule, factors, plain_w.data(), g.data(), plain_v.data(),
                          static_cast<std::int64_t>(count));
      sgd_update(rule, factors, w.data(), g.data(), v.data(), static_cast<std::int64_t>(count));
      ASSERT_EQ(w, plain_w);
      ASSERT_EQ(v, plain_v);
    }
  }
}

TEST(Sgd, WithoutMomentumOrDecayInfinitiesDoNotSpread) {
  Problem<float> problem({std::numeric_limits<float>::infinity()});
  problem.parameter.gradient.span()[0] = 1.0f;
  Sgd<float> sgd({&problem.parameter}, {.lr = 0.5});
  sgd.step();
  EXPECT_EQ(problem.parameter.value.span()[0], std::numeric_limits<float>::infinity());
}

TEST(Sgd, TheLearningRateMayChangeBetweenSteps) {
  Problem<double> problem({1.0});
  problem.parameter.gradient.span()[0] = 1.0;
  Sgd<double> sgd({&problem.parameter}, {.lr = 0.5});
  sgd.set_learning_rate(0.25);
  sgd.step();
  EXPECT_EQ(problem.parameter.value.span()[0], 0.75);
  EXPECT_THROW(sgd.set_learning_rate(-1), ConfigError);
}

}  // namespace
}  // namespace ddproof
