// Batch norm as a layer: PyTorch's values and gradients, what it refuses, and its buffers.
#include "reference/model/batch_norm.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "tests/support/copy_of.h"
#include "tests/support/golden.h"
#include "tests/support/lcg.h"
#include "tests/support/precision.h"

namespace ddproof {
namespace {

using nlohmann::json;

template <class T>
using BatchNormResults = std::vector<std::pair<std::string, std::vector<T>>>;

template <class T>
void draw(Lcg& lcg, Tensor<T>& tensor, double offset, double scale) {
  for (T& value : tensor.span()) value = static_cast<T>(offset + lcg.unit() * scale);
}

// The steps of a golden case, as its definition says.
template <class T>
BatchNormResults<T> run_batch_norm(const json& c) {
  Cpu<T> device;
  const bool affine = c["affine"];
  const auto shape = c["shape"].get<Shape>();
  BatchNorm<T> layer(
      device, "bn1",
      {.channels = shape[1], .eps = c["eps"], .momentum = c["momentum"], .affine = affine});
  Lcg lcg(c["seed"]);
  if (affine) {
    draw(lcg, layer.parameters()[0]->value, 1, 0.25);
    draw(lcg, layer.parameters()[1]->value, 0, 1);
  }
  BatchNormResults<T> results;
  for (std::size_t step = 0; step < 4; ++step) {
    const auto note = [&](const char* what, const Tensor<T>& tensor) {
      results.emplace_back(what, copy_of(tensor));
    };
    Tensor<T> x(device, shape), dy(device, shape);
    draw(lcg, x, c["offset"], 1);
    draw(lcg, dy, 0, 1);
    layer.set_training(step < 3);
    zero_grad(layer);
    note("y", layer.forward(x));
    note("dx", layer.backward(dy, {}));
    note("running_mean", layer.buffers()[0]->value);
    note("running_var", layer.buffers()[1]->value);
    if (!affine) continue;
    note("weight_gradient", layer.parameters()[0]->gradient);
    note("bias_gradient", layer.parameters()[1]->gradient);
  }
  return results;
}

TEST(BatchNorm, HasPyTorchsValuesAndGradients) {
  const json golden = read_golden("batch_norm.json");
  ASSERT_EQ(golden["cases"].size(), 5u);
  for (const json& c : golden["cases"]) {
    const BatchNormResults<float> in_float = run_batch_norm<float>(c);
    const BatchNormResults<double> in_double = run_batch_norm<double>(c);
    const std::size_t per_step = in_double.size() / 4;
    for (std::size_t i = 0; i < in_double.size(); ++i) {
      const auto& [what, values] = in_double[i];
      expect_as_close_as_rounding_allows(
          in_float[i].second, values, c["steps"][i / per_step][what],
          "seed " + c["seed"].dump() + ", step " + std::to_string(i / per_step) + ", " + what);
    }
  }
}

std::string batch_norm_refusal(const BatchNormOptions& options, const Shape& shape,
                               bool training = true) {
  Cpu<float> device;
  try {
    BatchNorm<float> layer(device, "bn1", options);
    layer.set_training(training);
    layer.forward(Tensor<float>(device, shape));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(BatchNorm, RefusesASingleValuePerChannelInTraining) {
  EXPECT_EQ(
      batch_norm_refusal({.channels = 3}, {1, 3, 1, 1}),
      "bn1: one value per channel in the whole batch, input shape [1, 3, 1, 1] here; training "
      "needs at least two");
  EXPECT_EQ(
      batch_norm_refusal({.channels = 3}, {1, 3}),
      "bn1: one value per channel in the whole batch, input shape [1, 3] here; training needs "
      "at least two");
  EXPECT_EQ(batch_norm_refusal({.channels = 3}, {1, 3, 1, 1}, false), "accepted");
  EXPECT_EQ(batch_norm_refusal({.channels = 3}, {1, 3, 1, 2}), "accepted");
}

TEST(BatchNorm, RefusesInputsAndOptionsThatDoNotFit) {
  EXPECT_EQ(batch_norm_refusal({.channels = 3}, {2, 4, 5, 5}),
            "bn1: input shape [2, 4, 5, 5], expected [batch, 3, 5, 5]");
  EXPECT_EQ(batch_norm_refusal({.channels = 3}, {3}), "bn1: input shape [3], expected [batch, 3]");
  EXPECT_EQ(batch_norm_refusal({.channels = 0}, {}), "bn1: channels 0, expected at least 1");
  EXPECT_EQ(batch_norm_refusal({.eps = -1}, {}), "bn1: eps -1, expected at least 0");
  EXPECT_EQ(batch_norm_refusal({.eps = std::numeric_limits<double>::quiet_NaN()}, {}),
            "bn1: eps nan, expected at least 0");
  EXPECT_EQ(batch_norm_refusal({.momentum = 2}, {}), "bn1: momentum 2, expected 0 to 1");
}

// As PyTorch: a rank that has no samples left must not spoil what evaluation uses.
TEST(BatchNorm, AnEmptyBatchLeavesTheRunningStatisticsAsTheyAre) {
  Cpu<float> device;
  BatchNorm<float> layer(device, "bn1", {.channels = 2});
  const Tensor<float> nothing(device, {0, 2, 3, 3});
  EXPECT_EQ(layer.forward(nothing).shape(), nothing.shape());
  EXPECT_EQ(layer.backward(nothing, {}).shape(), nothing.shape());
  EXPECT_EQ(copy_of(layer.buffers()[0]->value), (std::vector<float>{0, 0}));
  EXPECT_EQ(copy_of(layer.buffers()[1]->value), (std::vector<float>{1, 1}));
  EXPECT_TRUE(layer.parameters()[0]->has_gradient);
  EXPECT_EQ(copy_of(layer.parameters()[0]->gradient), (std::vector<float>{0, 0}));
}

TEST(BatchNorm, EvaluationLeavesTheRunningStatisticsAsTheyAre) {
  Cpu<float> device;
  BatchNorm<float> layer(device, "bn1", {.channels = 1, .eps = 0});
  Tensor<float> x(device, {2, 1});
  x.span()[0] = 3, x.span()[1] = -5;
  layer.set_training(false);
  EXPECT_EQ(copy_of(layer.forward(x)), (std::vector<float>{3, -5}));
  EXPECT_EQ(copy_of(layer.buffers()[0]->value), std::vector<float>{0});
}

TEST(BatchNorm, AddsToTheGradientsThatAreThere) {
  Cpu<float> device;
  BatchNorm<float> layer(device, "bn1", {.channels = 1, .eps = 0});
  Tensor<float> x(device, {2, 1}), dy(device, {2, 1});
  x.span()[0] = 1, x.span()[1] = -1;  // mean 0, deviation 1
  dy.span()[0] = 2, dy.span()[1] = 3;
  layer.set_input_gradient_needed(false);
  std::vector<std::string> ready;
  for (int pass = 1; pass <= 2; ++pass) {
    layer.forward(x);
    EXPECT_EQ(layer.backward(dy, [&](auto& parameter) { ready.push_back(parameter.name); }).count(),
              0);
    EXPECT_EQ(layer.parameters()[0]->gradient.span()[0], -1.0F * static_cast<float>(pass));
    EXPECT_EQ(layer.parameters()[1]->gradient.span()[0], 5.0F * static_cast<float>(pass));
  }
  EXPECT_EQ(ready, (std::vector<std::string>{"bn1.bias", "bn1.weight", "bn1.bias", "bn1.weight"}));
}

}  // namespace
}  // namespace ddproof
