// The same layers over a scalar that is no floating-point number: the field of 2^61 - 1 elements,
// where arithmetic is exact and associative.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu_generic.h"
#include "reference/model/conv2d.h"
#include "reference/model/linear.h"
#include "reference/model/sequential.h"
#include "reference/optim/adam.h"
#include "reference/optim/sgd.h"

namespace ddproof {
namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

struct Field {
  std::uint64_t value = 0;

  friend bool operator==(Field a, Field b) = default;
  friend Field operator+(Field a, Field b) { return {(a.value + b.value) % kPrime}; }
  friend Field operator*(Field a, Field b) {
    __extension__ using Wide = unsigned __int128;
    return {static_cast<std::uint64_t>(Wide{a.value} * b.value % kPrime)};
  }
};

}  // namespace

template <>
struct ScalarTraits<Field> {
  static Field from_integer(std::int64_t value) {
    const auto prime = static_cast<std::int64_t>(kPrime);
    return {static_cast<std::uint64_t>((value % prime + prime) % prime)};
  }
  static Field from_real(double value) {
    return from_integer(static_cast<std::int64_t>(value * 0x1p40));
  }
};

namespace {

// The polynomial activation that takes ReLU's place in a field.
class Square final : public Module<Field> {
 public:
  const Tensor<Field>& forward(const Tensor<Field>& input) override {
    input_ = &input;
    output_ = Tensor<Field>(input.device(), input.shape());
    for (std::size_t i = 0; i < input.span().size(); ++i) {
      output_.span()[i] = input.span()[i] * input.span()[i];
    }
    return output_;
  }
  const Tensor<Field>& backward(const Tensor<Field>& output_gradient,
                                const GradientReady<Field>&) override {
    gradient_ = Tensor<Field>(input_->device(), input_->shape());
    for (std::size_t i = 0; i < input_->span().size(); ++i) {
      const Field x = input_->span()[i];
      gradient_.span()[i] = (x + x) * output_gradient.span()[i];
    }
    return gradient_;
  }
  std::vector<Parameter<Field>*> parameters() override { return {}; }

 private:
  const Tensor<Field>* input_ = nullptr;
  Tensor<Field> output_;
  Tensor<Field> gradient_;
};

struct Network {
  Cpu<Field> device;
  Linear<Field>* first = nullptr;
  Linear<Field>* second = nullptr;
  std::unique_ptr<Sequential<Field>> layers;

  Network() {
    std::vector<std::unique_ptr<Module<Field>>> modules;
    auto fc1 = std::make_unique<Linear<Field>>(device, "fc1", 11, 9, 1);
    auto fc2 = std::make_unique<Linear<Field>>(device, "fc2", 9, 5, 1);
    first = fc1.get();
    second = fc2.get();
    modules.push_back(std::move(fc1));
    modules.push_back(std::make_unique<Square>());
    modules.push_back(std::move(fc2));
    layers = std::make_unique<Sequential<Field>>(std::move(modules));
  }

  std::vector<Field> gradients() {
    std::vector<Field> all;
    for (Parameter<Field>* parameter : layers->parameters()) {
      all.insert(all.end(), parameter->gradient.span().begin(), parameter->gradient.span().end());
    }
    return all;
  }
};

// Samples of features and output gradients, taken in the given order.
void run(Network& network, const std::vector<std::int64_t>& samples) {
  const auto batch = static_cast<std::int64_t>(samples.size());
  Tensor<Field> input(network.device, {batch, 11});
  Tensor<Field> gradient(network.device, {batch, 5});
  for (std::int64_t row = 0; row < batch; ++row) {
    std::mt19937_64 engine(static_cast<std::uint64_t>(samples[static_cast<std::size_t>(row)]));
    for (std::int64_t i = 0; i < 11; ++i) input.data()[row * 11 + i] = {engine() % kPrime};
    for (std::int64_t i = 0; i < 5; ++i) gradient.data()[row * 5 + i] = {engine() % kPrime};
  }
  network.layers->forward(input);
  network.layers->backward(gradient, {});
}

TEST(FieldScalar, GivesTheSameGradientsInAnyOrderAndAnyCut) {
  Network whole, reversed, cut;
  run(whole, {1, 2, 3, 4, 5, 6, 7});
  run(reversed, {7, 6, 5, 4, 3, 2, 1});
  run(cut, {2, 4, 6});
  run(cut, {1, 3, 5, 7});
  EXPECT_EQ(reversed.gradients(), whole.gradients());
  EXPECT_EQ(cut.gradients(), whole.gradients());
  Network other;
  run(other, {1, 2, 3, 4, 5, 6, 8});
  EXPECT_NE(other.gradients(), whole.gradients());
}

TEST(FieldScalar, ComputesALinearLayerExactly) {
  Network network;
  run(network, {3});
  std::mt19937_64 engine(3);
  std::vector<Field> hidden(9);
  std::vector<Field> x(11);
  for (Field& value : x) value = {engine() % kPrime};
  for (std::size_t o = 0; o < hidden.size(); ++o) {
    hidden[o] = network.first->parameters()[1]->value.span()[o];
    for (std::size_t i = 0; i < x.size(); ++i) {
      hidden[o] = hidden[o] + network.first->parameters()[0]->value.span()[o * 11 + i] * x[i];
    }
  }
  // dW2 of one sample is dy times the squared hidden value.
  for (std::size_t o = 0; o < 5; ++o) {
    const Field dy = {engine() % kPrime};
    EXPECT_EQ(network.second->parameters()[1]->gradient.span()[o], dy);
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      EXPECT_EQ(network.second->parameters()[0]->gradient.span()[o * 9 + i],
                dy * (hidden[i] * hidden[i]));
    }
  }
}

TEST(FieldScalar, RunsConvolutions) {
  Cpu<Field> device;
  const Conv2dOptions options = {.in_channels = 2, .out_channels = 3, .kernel = 3, .padding = 1};
  Conv2d<Field> conv(device, "conv1", options, 1);
  Tensor<Field> input(device, {1, 2, 4, 4});
  std::fill_n(input.data(), input.count(), Field{1});
  const Tensor<Field>& output = conv.forward(input);
  // Away from the border, all ones see the sum of the filter.
  for (std::size_t channel = 0; channel < 3; ++channel) {
    Field sum = conv.parameters()[1]->value.span()[channel];
    for (std::size_t tap = 0; tap < 18; ++tap) {
      sum = sum + conv.parameters()[0]->value.span()[channel * 18 + tap];
    }
    EXPECT_EQ(output.span()[channel * 16 + 5], sum);
  }
  EXPECT_EQ(conv.backward(output, {}).shape(), input.shape());
}

template <class T>
Parameter<T> one_weight(Device<T>& device, T value, T gradient) {
  Parameter<T> w{"w", Tensor<T>(device, {1}), Tensor<T>(device, {1}), true};
  w.value.data()[0] = value;
  w.gradient.data()[0] = gradient;
  return w;
}

TEST(FieldScalar, IsTrainedBySgd) {
  Cpu<Field> device;
  Parameter<Field> w = one_weight<Field>(device, {3}, {5});
  Sgd<Field> sgd({&w}, {.lr = 0.5, .momentum = 0.25, .weight_decay = 0.125, .nesterov = true});
  const auto real = [](double value) { return from_real<Field>(value); };
  Field weight{3};
  Field buffer;
  for (int step = 0; step < 3; ++step) {
    sgd.step();
    Field g = weight * real(0.125) + Field{5};
    buffer = step == 0 ? g : g * real(1) + buffer * real(0.25);
    g = buffer * real(0.25) + g;
    weight = g * real(-0.5) + weight;
    EXPECT_EQ(w.value.data()[0], weight) << step;
  }
}

TEST(FieldScalar, HasNoRootForAdam) {
  Cpu<Field> device;
  Parameter<Field> w = one_weight<Field>(device, {3}, {5});
  Adam<Field> adam({&w}, {});
  try {
    adam.step();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "adam_update needs a scalar with an order, a quotient and a square root, this "
                 "model's scalar has none; use float or double, or a layer without it");
  }
}

// A double that counts its fused operations.
struct Counted {
  double value = 0;
  int fused = 0;

  Counted(double value = 0, int fused = 0) : value(value), fused(fused) {}
  friend Counted operator+(Counted a, Counted b) { return {a.value + b.value, a.fused + b.fused}; }
  friend Counted operator*(Counted a, Counted b) { return {a.value * b.value, a.fused + b.fused}; }
  friend Counted fma(Counted a, Counted b, Counted c) {
    return {std::fma(a.value, b.value, c.value), a.fused + b.fused + c.fused + 1};
  }
};

TEST(OwnScalar, ItsOwnFusedMultiplyAddIsTheOneThatIsUsed) {
  EXPECT_EQ(multiply_add(Counted{2}, Counted{3}, Counted{4}).fused, 1);
  EXPECT_EQ(multiply_add(0.1, 10.0, -1.0), std::fma(0.1, 10.0, -1.0));
  Cpu<Counted> device;
  const Counted x[] = {{2}, {3}};
  Counted y;
  const Counted none;
  device.linear_forward({.batch = 1, .in = 2, .out = 1}, x, x, &none, &y);
  EXPECT_EQ(y.value, 13);
  EXPECT_EQ(y.fused, 2);
}

TEST(FieldScalar, RefusesWhatNeedsAnOrder) {
  Cpu<Field> device;
  Field value;
  try {
    device.relu_forward(&value, &value, 1);
    FAIL() << "expected ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "relu needs a scalar with an order, this model's scalar has none; use float or "
                 "double, or a layer without it");
  }
  try {
    device.batch_norm_statistics({.batch = 1, .channels = 1}, &value, &value, &value);
    FAIL() << "expected ConfigError";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "batch_norm needs a scalar with a square root, this model's scalar has none; use "
                 "float or double, or a layer without it");
  }
}

}  // namespace
}  // namespace ddproof
