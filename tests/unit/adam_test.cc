// Adam and AdamW against the outputs of PyTorch 1.13.1, bit for bit, and their rules one by one.
#include "reference/optim/adam.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "backends/api/error.h"
#include "reference/compute/adam_kernel.h"
#include "tests/unit/optimizer_problem.h"

namespace ddproof {
namespace {

using nlohmann::json;

AdamOptions adam_options(const json& test) {
  const json& opt = test["opt"];
  return {.lr = opt.value("lr", 1e-3),
          .beta1 = opt.value("beta1", 0.9),
          .beta2 = opt.value("beta2", 0.999),
          .eps = opt.value("eps", 1e-8),
          .weight_decay = opt.value("weight_decay", 0.0),
          .amsgrad = opt.value("amsgrad", false),
          .decoupled = test["optimizer"] == "adamw"};
}

template <class T>
void expect_golden(const json& golden, const json& test) {
  const auto a = from_hex<T>(golden["a"]);
  const auto b = from_hex<T>(golden["b"]);
  Problem<T> problem(from_hex<T>(golden["w0"]));
  Adam<T> adam({&problem.parameter}, adam_options(test));
  int compared = 0;
  for (int step = 1; step <= 8; ++step) {
    problem.set_gradient(a, b);
    adam.step();
    const auto found = test["w_after_step"].find(std::to_string(step));
    if (found == test["w_after_step"].end()) continue;
    ASSERT_EQ(values<T>(problem.parameter.value.span()), from_hex<T>(*found))
        << test["optimizer"] << test["dtype"] << test["opt"] << " step " << step;
    ++compared;
  }
  EXPECT_EQ(compared, 3);
  const ParameterState<T>& state = adam.state()[0];
  EXPECT_EQ(state.updates, 8);
  const StateLayout layout = adam.state_layout();
  ASSERT_EQ(layout.tensors.size(), test.contains("max_exp_avg_sq") ? 3u : 2u);
  for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
    EXPECT_EQ(values<T>(state.tensors[t].span()), from_hex<T>(test[layout.tensors[t]]));
  }
}

TEST(AdamGolden, EveryCaseEqualsPyTorchBitForBit) {
  const json golden = read_golden("adam.json");
  ASSERT_EQ(golden["cases"].size(), 22u);
  for (const json& test : golden["cases"]) {
    if (test["dtype"] == "float64") {
      expect_golden<double>(golden, test);
    } else {
      expect_golden<float>(golden, test);
    }
  }
}

TEST(AdamGolden, RefusesWhatPyTorchRefuses) {
  const json golden = read_golden("adam.json");
  ASSERT_EQ(golden["errors"].size(), 14u);
  for (const json& test : golden["errors"]) {
    EXPECT_THROW(validate(adam_options(test)), ConfigError) << test;
  }
}

std::string adam_error(const AdamOptions& options) {
  try {
    validate(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Adam, ErrorsNameTheOptionItsValueAndTheRange) {
  EXPECT_EQ(adam_error({.lr = -1}), "Adam lr -1: expected a finite number, at least 0");
  EXPECT_EQ(adam_error({.eps = -1, .decoupled = true}),
            "AdamW eps -1: expected a finite number, at least 0");
  EXPECT_EQ(adam_error({.beta1 = 1}), "Adam beta1 1: expected at least 0 and below 1");
  EXPECT_EQ(adam_error({.beta2 = std::numeric_limits<double>::quiet_NaN()}),
            "Adam beta2 nan: expected at least 0 and below 1");
  EXPECT_EQ(adam_error({.weight_decay = std::numeric_limits<double>::infinity()}),
            "Adam weight_decay inf: expected a finite number, at least 0");
  EXPECT_EQ(adam_error({.lr = 0, .beta1 = 0, .beta2 = 0, .eps = 0}), "");
}

TEST(Adam, NeedsAParameter) {
  EXPECT_THROW(Adam<float>({}, {}), ConfigError);
  EXPECT_THROW(Adam<float>({}, {.decoupled = true}), ConfigError);
}

TEST(Adam, CountsTheUpdatesOfEachParameterAlone) {
  Problem<float> often({1.0f});
  Problem<float> seldom({1.0f});
  often.parameter.gradient.span()[0] = seldom.parameter.gradient.span()[0] = 0.5f;
  Adam<float> adam({&often.parameter, &seldom.parameter}, {.lr = 0.1});
  seldom.parameter.has_gradient = false;
  adam.step();
  EXPECT_EQ(seldom.parameter.value.span()[0], 1.0f);
  EXPECT_TRUE(adam.state()[1].tensors.empty());
  const float after_one = often.parameter.value.span()[0];
  seldom.parameter.has_gradient = true;
  adam.step();
  EXPECT_EQ(adam.state()[0].updates, 2);
  EXPECT_EQ(adam.state()[1].updates, 1);
  EXPECT_EQ(seldom.parameter.value.span()[0], after_one);  // its own first update
}

// A long run is where the correction fades: with t counted wrongly after a restore it would not.
TEST(Adam, ALoadedStateGoesOnBitForBit) {
  const std::vector<float> a{1.0f, 0.5f}, b{0.25f, -1.0f};
  const AdamOptions options{.lr = 0.1, .weight_decay = 0.01, .amsgrad = true, .decoupled = true};
  Problem<float> whole({1.0f, 2.0f});
  Adam<float> adam({&whole.parameter}, options);
  Problem<float> other({0.0f, 0.0f});
  Adam<float> resumed({&other.parameter}, options);
  for (int step = 1; step <= 10; ++step) {
    whole.set_gradient(a, b);
    adam.step();
    if (step == 4) {
      std::ranges::copy(whole.parameter.value.span(), other.parameter.value.data());
      std::vector<ParameterState<float>> state(1);
      for (const Tensor<float>& tensor : adam.state()[0].tensors) {
        state[0].tensors.emplace_back(other.device, tensor.shape());
        std::ranges::copy(tensor.span(), state[0].tensors.back().data());
      }
      state[0].updates = adam.state()[0].updates;
      resumed.load_state(std::move(state));
    } else if (step > 4) {
      other.set_gradient(a, b);
      resumed.step();
    }
  }
  EXPECT_EQ(values<float>(other.parameter.value.span()),
            values<float>(whole.parameter.value.span()));
}

// The processor's vector loop and the plain loop must agree at every length, tails included.
TEST(Adam, VectorsGiveTheBitsOfThePlainLoop) {
  const AdamFactors<float> factors{.decay = 0.01f,
                                   .beta1 = 0.9f,
                                   .one_minus_beta1 = 0.1f,
                                   .beta2 = 0.99f,
                                   .one_minus_beta2 = 0.01f,
                                   .sqrt_correction = 0.3f,
                                   .eps = 1e-8f,
                                   .minus_step_size = -0.1f};
  using Decay = AdamRule::Decay;
  for (const Decay decay : {Decay::kNone, Decay::kGradient, Decay::kWeight}) {
    for (const bool amsgrad : {false, true}) {
      for (std::size_t count = 0; count < 40; ++count) {
        std::vector<std::vector<float>> vectors(5, std::vector<float>(count));
        for (std::size_t k = 0; k < 5; ++k) {
          for (std::size_t i = 0; i < count; ++i) {
            vectors[k][i] = 1.0f / static_cast<float>(i + 2 * k + 1);
          }
        }
        auto plain = vectors;
        const auto length = static_cast<std::int64_t>(count);
        const AdamRule rule{.decay = decay, .amsgrad = amsgrad};
        const auto state = [&](auto& v) {
          return AdamState<float>{v[2].data(), v[3].data(), amsgrad ? v[4].data() : nullptr};
        };
        internal::adam_loops(rule, factors, plain[0].data(), plain[1].data(), state(plain), length);
        adam_update(rule, factors, vectors[0].data(), vectors[1].data(), state(vectors), length);
        ASSERT_EQ(vectors, plain);
      }
    }
  }
}

TEST(Adam, TheLearningRateMayChangeBetweenSteps) {
  Problem<double> problem({1.0});
  problem.parameter.gradient.span()[0] = 1.0;
  Adam<double> adam({&problem.parameter}, {.lr = 0.5, .eps = 0});
  adam.set_learning_rate(0.25);
  EXPECT_EQ(adam.learning_rate(), 0.25);
  adam.step();
  EXPECT_DOUBLE_EQ(problem.parameter.value.span()[0], 0.75);  // the first step is lr
  EXPECT_THROW(adam.set_learning_rate(-1), ConfigError);
}

TEST(Adam, ALargestSquareThatIsNoNumberStaysOne) {
  Problem<float> problem({1.0f});
  Adam<float> adam({&problem.parameter}, {.amsgrad = true});
  problem.parameter.gradient.span()[0] = std::numeric_limits<float>::quiet_NaN();
  adam.step();
  EXPECT_NE(adam.state()[0].tensors[2].span()[0], adam.state()[0].tensors[2].span()[0]);
}

}  // namespace
}  // namespace ddproof
