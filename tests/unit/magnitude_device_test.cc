// The magnitudes that backward sums up, and the bound they give between one device and ranks that
// cut its batch.
#include "reference/oracle/magnitude_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "reference/model/activation.h"
#include "reference/model/conv2d.h"
#include "reference/model/linear.h"
#include "reference/model/loss.h"
#include "reference/model/residual.h"
#include "reference/model/sequential.h"
#include "reference/oracle/exact_inputs.h"
#include "reference/oracle/rounding_bound.h"

namespace ddproof {
namespace {

constexpr float kTiny = std::numeric_limits<float>::min();
constexpr std::int64_t kClasses = 4;

TEST(MagnitudeDevice, SumsAbsoluteProductsInALinearLayer) {
  Cpu<float> cpu;
  MagnitudeDevice device(cpu);
  const float dy[] = {1, 2};  // backward hands on magnitudes, so these are positive
  const float x[] = {3, -5, -7, 11};
  float dw[2] = {};
  float dbias[1] = {};
  device.linear_backward_parameters({.batch = 2, .in = 2, .out = 1}, dy, x, dw, dbias);
  EXPECT_EQ(dw[0], 1 * 3 + 2 * 7 + kTiny);
  EXPECT_EQ(dw[1], 1 * 5 + 2 * 11 + kTiny);
  EXPECT_EQ(dbias[0], 3 + kTiny);
  EXPECT_EQ(device.path_to(dw).terms, 2);
}

TEST(MagnitudeDevice, RefusesWhatHasNoBound) {
  Cpu<float> cpu;
  MagnitudeDevice device(cpu);
  const auto error = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const ConfigError& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_EQ(error([&] { device.adam_update({}, {}, nullptr, nullptr, {}, 0); }),
            "MagnitudeDevice: no rounding bound is known for adam_update; compare runs of SGD "
            "without clipping");
  EXPECT_EQ(error([&] { device.lane_sums(LaneSum::kSquares, nullptr, nullptr, 0); }),
            "MagnitudeDevice: no rounding bound is known for lane_sums; compare runs of SGD "
            "without clipping");
}

TEST(MagnitudeDevice, LeavesForwardAlone) {
  Cpu<float> cpu;
  MagnitudeDevice device(cpu);
  const float x[] = {-3, 5};
  const float w[] = {2, -1};
  const float bias[] = {1};
  float y[1] = {};
  device.linear_forward({.batch = 1, .in = 2, .out = 1}, x, w, bias, y);
  EXPECT_EQ(y[0], -10);
}

std::unique_ptr<Module<float>> make_small_cnn(Device<float>& device) {
  std::vector<std::unique_ptr<Module<float>>> layers;
  layers.push_back(std::make_unique<Conv2d<float>>(
      device, "conv", Conv2dOptions{.out_channels = 3, .kernel = 3, .padding = 1}, 1));
  layers.push_back(std::make_unique<ReLU<float>>(device));
  layers.push_back(std::make_unique<MaxPool2d<float>>(device, "pool", 2, 2));
  layers.push_back(std::make_unique<Flatten<float>>());
  layers.push_back(std::make_unique<Linear<float>>(device, "fc1", 3 * 3 * 3, 8, 1));
  layers.push_back(std::make_unique<ReLU<float>>(device));
  layers.push_back(std::make_unique<Linear<float>>(device, "fc2", 8, kClasses, 1));
  return std::make_unique<Sequential<float>>(std::move(layers));
}

// Samples first .. first+count-1, 6x6 pixels each.
void run_backward(Module<float>& model, Device<float>& device, std::int64_t first,
                  std::int64_t count, double scale) {
  Tensor<float> input(device, {count, 1, 6, 6});
  std::vector<std::int64_t> labels;
  for (std::int64_t s = 0; s < count; ++s) {
    for (std::int64_t p = 0; p < 36; ++p) {
      const auto bits = mixed_bits(5, static_cast<std::uint64_t>(first + s), p);
      input.span()[static_cast<std::size_t>(36 * s + p)] =
          static_cast<float>(bits >> 40) * 0x1p-23f - 1;
    }
    labels.push_back((first + s) % kClasses);
  }
  zero_grad(model);
  SoftmaxCrossEntropy<float> loss;
  loss.forward(model.forward(input), labels);
  model.backward(loss.backward(scale), {});
}

TEST(MagnitudeDevice, CountsTheRoundingsOfEveryPath) {
  Cpu<float> cpu;
  MagnitudeDevice device(cpu);
  auto model = make_small_cnn(device);
  run_backward(*model, device, 0, 12, 1);
  const auto parameters = model->parameters();
  ASSERT_EQ(parameters.size(), 6u);
  const auto path = [&](std::size_t i) { return device.path_to(parameters[i]->gradient.data()); };
  EXPECT_EQ(path(4).above, 3);                     // the loss's factor and product
  EXPECT_EQ(path(4).terms, 12);                    // fc2: samples
  EXPECT_EQ(path(2).above, 3 + kClasses);          // fc1: through fc2
  EXPECT_EQ(path(0).above, 3 + kClasses + 8 + 1);  // conv: through fc1 and one pooling window
  EXPECT_EQ(path(0).terms, 12 * 36);               // samples and positions
}

TEST(MagnitudeDevice, CountsTheRoundingWhereBranchesMeet) {
  Cpu<float> cpu;
  MagnitudeDevice device(cpu);
  std::vector<std::unique_ptr<Module<float>>> layers;
  layers.push_back(std::make_unique<Linear<float>>(device, "fc1", 36, kClasses, 1));
  layers.push_back(std::make_unique<Residual<float>>(
      std::make_unique<Linear<float>>(device, "fc2", kClasses, kClasses, 1), nullptr));
  std::vector<std::unique_ptr<Module<float>>> all;
  all.push_back(std::make_unique<Flatten<float>>());
  all.push_back(std::make_unique<Sequential<float>>(std::move(layers)));
  Sequential<float> model(std::move(all));
  run_backward(model, device, 0, 12, 1);
  const auto parameters = model.parameters();
  EXPECT_EQ(device.path_to(parameters[2]->gradient.data()).above, 3);
  EXPECT_EQ(device.path_to(parameters[0]->gradient.data()).above, 3 + kClasses + 1);
}

TEST(MagnitudeDevice, CountsTheRoundingsOfInterpolation) {
  Cpu<float> cpu;
  MagnitudeDevice device(cpu);
  const BilinearShape shape{.planes = 1, .height = 1, .width = 2, .out_height = 1, .out_width = 4};
  const float dy[] = {1, 2, 3, 4};
  float dx[2] = {}, dw[2] = {}, dbias[1] = {};
  device.bilinear_backward(shape, dy, dx);
  EXPECT_EQ(dx[0], 1 + 0.75F * 2 + 0.25F * 3);
  device.linear_backward_parameters({.batch = 1, .in = 2, .out = 1}, dx, dx, dw, dbias);
  // 4 of the outputs at most, each twice at an end; and the one row is an end as well.
  EXPECT_EQ(device.path_to(dw).above, 2 * 5 * (2 * 3));
}

TEST(MagnitudeDevice, RefusesToTrainThroughBatchNorm) {
  Cpu<float> cpu;
  MagnitudeDevice device(cpu);
  float x[2] = {1, 2}, mean = 0, variance = 0;
  try {
    device.batch_norm_statistics({.batch = 2, .channels = 1}, x, &mean, &variance);
    FAIL() << "expected ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "no rounding bound is known for the gradients of batch norm, whose statistics are "
                 "sums over the whole batch; compare a model without it");
  }
}

// The largest |error|/bound between one device with 12 samples and `ranks` that share them.
double largest_ratio(int ranks, double scale, double divisor) {
  Cpu<float> cpu;
  MagnitudeDevice magnitude_device(cpu);
  auto alone = make_small_cnn(cpu);
  auto part = make_small_cnn(cpu);
  auto magnitudes = make_small_cnn(magnitude_device);
  run_backward(*alone, cpu, 0, 12, scale);
  run_backward(*magnitudes, magnitude_device, 0, 12, scale);
  const auto reciprocal = static_cast<float>(1 / divisor);
  std::vector<std::vector<float>> means(alone->parameters().size());
  for (int rank = 0; rank < ranks; ++rank) {
    run_backward(*part, cpu, 12 / ranks * rank, 12 / ranks, scale);
    for (std::size_t i = 0; i < means.size(); ++i) {
      const auto gradient = part->parameters()[i]->gradient.span();
      means[i].resize(gradient.size());
      for (std::size_t j = 0; j < gradient.size(); ++j) means[i][j] += gradient[j] * reciprocal;
    }
  }
  double largest = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const auto expected = alone->parameters()[i]->gradient.span();
    const auto& sums = magnitudes->parameters()[i]->gradient;
    const GradientPath path = magnitude_device.path_to(sums.data());
    for (std::size_t j = 0; j < means[i].size(); ++j) {
      const double error =
          std::abs(static_cast<double>(means[i][j]) - static_cast<double>(expected[j]));
      largest = std::max(largest, error / ddp_gradient_bound(path, ranks, sums.span()[j]));
    }
  }
  return largest;
}

TEST(DdpGradientBound, HoldsAtEveryWorldSizeAndScale) {
  for (double scale : {1.0, 1e-5, 1e-20, 1e-36, 1e12}) {
    for (int ranks : {1, 2, 3, 4, 6, 12}) {
      EXPECT_LE(largest_ratio(ranks, scale, ranks), 1) << ranks << " ranks, scale " << scale;
    }
  }
}

TEST(DdpGradientBound, FindsAWrongDivisorAtEveryScale) {
  for (double scale : {1.0, 1e-5, 1e-20, 1e12}) {
    EXPECT_GT(largest_ratio(4, scale, 4.001), 1) << "scale " << scale;
  }
}

}  // namespace
}  // namespace ddproof
