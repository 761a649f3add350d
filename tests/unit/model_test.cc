// Layers and models: names, order of gradients, refusals, and gradients that are exact derivatives.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "reference/model/models.h"
#include "tests/support/copy_of.h"
#include "tests/support/refusal.h"
#include "tests/unit/naive_layers.h"

namespace ddproof::testing {
namespace {

template <class T>
void set_values(Tensor<T>& tensor, const Values<T>& values) {
  ASSERT_EQ(static_cast<std::size_t>(tensor.count()), values.size());
  std::copy(values.begin(), values.end(), tensor.data());
}

template <class T>
std::vector<std::string> described_parameters(Module<T>& module) {
  std::vector<std::string> result;
  for (const Parameter<T>* parameter : module.parameters()) {
    EXPECT_EQ(parameter->gradient.shape(), parameter->value.shape());
    result.push_back(parameter->name + " " + to_string(parameter->value.shape()));
  }
  return result;
}

TEST(Models, HaveTheParametersOfTheirPyTorchTwins) {
  Cpu<float> device;
  EXPECT_EQ(
      described_parameters(*make_model<float>("mlp", {}, 10, device, 1)),
      (std::vector<std::string>{"fc1.weight [512, 784]", "fc1.bias [512]", "fc2.weight [512, 512]",
                                "fc2.bias [512]", "fc3.weight [10, 512]", "fc3.bias [10]"}));
  const ImageShape cifar = {.channels = 3, .height = 32, .width = 32};
  EXPECT_EQ(described_parameters(*make_model<float>("cnn", cifar, 10, device, 1)),
            (std::vector<std::string>{"conv1.weight [32, 3, 3, 3]", "conv1.bias [32]",
                                      "conv2.weight [64, 32, 3, 3]", "conv2.bias [64]",
                                      "fc1.weight [128, 4096]", "fc1.bias [128]",
                                      "fc2.weight [10, 128]", "fc2.bias [10]"}));
}

TEST(Models, MapImagesToClasses) {
  Cpu<float> device;
  for (const char* name : {"mlp", "cnn", "resnet8"}) {
    for (const ImageShape& image :
         {ImageShape{1, 28, 28}, ImageShape{3, 32, 32}, ImageShape{2, 5, 7}}) {
      const auto model = make_model<float>(name, image, 4, device, 1);
      const Tensor<float> input(device, {3, image.channels, image.height, image.width});
      EXPECT_EQ(model->forward(input).shape(), (Shape{3, 4})) << name;
    }
  }
}

TEST(Models, ReportGradientsLastLayerFirstWhenComplete) {
  Cpu<float> device;
  for (const char* name : {"mlp", "cnn", "resnet8"}) {
    const auto model = make_model<float>(name, {1, 8, 8}, 3, device, 1);
    std::mt19937_64 engine(31);
    Tensor<float> input(device, {2, 1, 8, 8});
    set_values(input, random_values<float>(engine, input.count()));
    Tensor<float> gradient(device, {2, 3});
    set_values(gradient, random_values<float>(engine, gradient.count()));
    std::vector<Parameter<float>*> reported;
    std::vector<Values<float>> when_reported;
    model->forward(input);
    model->backward(gradient, [&](Parameter<float>& parameter) {
      EXPECT_TRUE(parameter.has_gradient);
      reported.push_back(&parameter);
      when_reported.push_back(copy_of(parameter.gradient));
    });
    std::vector<Parameter<float>*> expected = model->parameters();
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(reported, expected) << name;
    for (std::size_t i = 0; i < reported.size(); ++i) {
      EXPECT_EQ(when_reported[i], copy_of(reported[i]->gradient)) << reported[i]->name;
    }
    zero_grad(*model);
    EXPECT_FALSE(expected[0]->has_gradient);
    EXPECT_EQ(copy_of(expected[0]->gradient), Values<float>(3));
  }
}

TEST(Models, LeaveOutTheGradientOfTheImagesUnlessAsked) {
  Cpu<float> device;
  for (const char* name : {"mlp", "cnn", "resnet8"}) {
    const auto model = make_model<float>(name, {1, 8, 8}, 3, device, 1);
    const Tensor<float> input(device, {2, 1, 8, 8});
    model->forward(input);
    const Tensor<float> gradient(device, {2, 3});
    EXPECT_EQ(model->backward(gradient, {}).count(), 0);
    model->set_input_gradient_needed(true);
    EXPECT_EQ(model->backward(gradient, {}).shape(), input.shape());
  }
}

TEST(Models, DeepLabGivesARowForEachPixel) {
  Cpu<float> device;
  const auto model = make_model<float>("deeplab", {3, 9, 14}, 4, device, 1);
  const Tensor<float> input(device, {2, 3, 9, 14});
  EXPECT_EQ(model->forward(input).shape(), (Shape{2 * 9 * 14, 4}));
  const std::vector<std::string> parameters = described_parameters(*model);
  EXPECT_EQ(parameters.front(), "backbone.conv1.weight [16, 3, 3, 3]");
  EXPECT_EQ(parameters.back(), "classifier.4.bias [4]");
}

TEST(InitialValues, AreAFunctionOfSeedNameAndIndex) {
  Cpu<float> device;
  Linear<float> alone(device, "fc2", 512, 512, 7);
  const auto model = make_model<float>("mlp", {}, 10, device, 7);
  const auto other_seed = make_model<float>("mlp", {}, 10, device, 8);
  EXPECT_EQ(copy_of(alone.parameters()[0]->value), copy_of(model->parameters()[2]->value));
  EXPECT_NE(copy_of(other_seed->parameters()[2]->value), copy_of(model->parameters()[2]->value));
}

TEST(InitialValues, AreUniformWithinOneOverTheRootOfTheFanIn) {
  Cpu<double> device;
  Conv2d<double> layer(device, "conv", {.in_channels = 4, .out_channels = 64, .kernel = 5}, 3);
  for (Parameter<double>* parameter : layer.parameters()) {
    int positive = 0;
    for (double value : parameter->value.span()) {
      EXPECT_GE(value, -0.1);
      EXPECT_LT(value, 0.1);
      positive += value >= 0;
    }
    // A fair coin leaves this range with probability below 2e-9 (Hoeffding); the seed is fixed.
    const auto n = static_cast<double>(parameter->value.count());
    EXPECT_LE(std::fabs(positive - n / 2), std::sqrt(10 * n));
  }
}

double inner_product(const Values<double>& a, const Values<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// A network without activations is linear in each parameter and in its input. So with integers the
// change of <g, output> under a step is the gradient times the step, exactly.
class LinearNetwork {
 public:
  LinearNetwork() {
    std::vector<std::unique_ptr<Module<double>>> layers;
    const Conv2dOptions first = {
        .in_channels = 2, .out_channels = 3, .kernel = 3, .stride = 2, .padding = 1, .dilation = 2};
    const Conv2dOptions second = {.in_channels = 3, .out_channels = 2, .kernel = 2, .padding = 1};
    layers.push_back(std::make_unique<Conv2d<double>>(device_, "conv1", first, 1));
    layers.push_back(std::make_unique<Conv2d<double>>(device_, "conv2", second, 1));
    layers.push_back(std::make_unique<Flatten<double>>());
    layers.push_back(std::make_unique<Linear<double>>(device_, "fc1", 2 * 4 * 5, 5, 1));
    layers.push_back(std::make_unique<Linear<double>>(device_, "fc2", 5, 3, 1));
    network_ = std::make_unique<Sequential<double>>(std::move(layers));
    for (Parameter<double>* parameter : network_->parameters()) fill(parameter->value);
    fill(input_);
    fill(output_gradient_);
    objective();
    input_gradient_ = copy_of(network_->backward(output_gradient_, {}));
  }

  double objective() {
    return inner_product(copy_of(network_->forward(input_)), copy_of(output_gradient_));
  }

  // objective(tensor + step) - objective(tensor) against <gradient, step>.
  void expect_exact_derivative(Tensor<double>& tensor, const Values<double>& gradient,
                               const std::string& name) {
    const Values<double> start = copy_of(tensor);
    const Values<double> step = random_integers<double>(engine_, tensor.count());
    const double before = objective();
    for (std::size_t i = 0; i < step.size(); ++i) tensor.span()[i] += step[i];
    EXPECT_EQ(objective() - before, inner_product(gradient, step)) << name;
    set_values(tensor, start);
  }

  void expect_exact_derivatives() {
    for (Parameter<double>* parameter : network_->parameters()) {
      expect_exact_derivative(parameter->value, copy_of(parameter->gradient), parameter->name);
    }
    expect_exact_derivative(input_, input_gradient_, "input");
  }

 private:
  void fill(Tensor<double>& tensor) {
    set_values(tensor, random_integers<double>(engine_, tensor.count()));
  }

  std::mt19937_64 engine_{41};
  Cpu<double> device_;
  std::unique_ptr<Sequential<double>> network_;
  Tensor<double> input_{device_, {3, 2, 7, 9}};
  Tensor<double> output_gradient_{device_, {3, 3}};
  Values<double> input_gradient_;
};

TEST(Gradients, AreExactDerivativesOfALinearNetwork) { LinearNetwork().expect_exact_derivatives(); }

template <class Layer>
std::string forward_refusal(Layer&& layer, const Shape& shape) {
  Cpu<float> device;
  const Tensor<float> input(device, shape);
  return refusal_of([&] { layer.forward(input); });
}

TEST(Layers, RefuseInputsOfAnotherShape) {
  Cpu<float> device;
  EXPECT_EQ(forward_refusal(Linear<float>(device, "fc1", 784, 10, 1), {32, 700}),
            "fc1: input shape [32, 700], expected [batch, 784]");
  EXPECT_EQ(forward_refusal(Linear<float>(device, "fc1", 4, 10, 1), {4}),
            "fc1: input shape [4], expected [batch, 4]");
  const Conv2dOptions options = {.in_channels = 3, .kernel = 3, .dilation = 2};
  EXPECT_EQ(forward_refusal(Conv2d<float>(device, "conv1", options, 1), {2, 1, 8, 8}),
            "conv1: input shape [2, 1, 8, 8], expected [batch, 3, 8, 8]");
  EXPECT_EQ(forward_refusal(Conv2d<float>(device, "conv1", options, 1), {2, 3, 8, 4}),
            "conv1: padded width 4, expected at least 5");
  EXPECT_EQ(forward_refusal(MaxPool2d<float>(device, "pool1", 2, 2), {2, 3, 1, 4}),
            "pool1: input height 1, expected at least 2");
  EXPECT_EQ(forward_refusal(GlobalAveragePool<float>(device), {2, 3, 0, 4}),
            "average pool: positions 0, expected at least 1");
  EXPECT_EQ(forward_refusal(UpsampleBilinear<float>(device, "up", 4, 4), {2, 3, 4, 0}),
            "up: input width 0, expected at least 1");
  EXPECT_EQ(forward_refusal(PixelRows<float>(device), {2, 3}),
            "pixel rows: input shape [2, 3], expected [batch, batch, batch, batch]");
  EXPECT_EQ(forward_refusal(MaxPool2d<float>(device, "pool1", 2, 2), {2, 3}),
            "pool1: input shape [2, 3], expected [batch, batch, batch, batch]");
}

TEST(Layers, RefuseSizesOutOfRange) {
  Cpu<float> device;
  EXPECT_EQ(refusal_of([&] { Linear<float>(device, "fc1", 0, 1, 1); }),
            "fc1: in 0, expected at least 1");
  EXPECT_EQ(refusal_of([&] { Conv2d<float>(device, "c", {.stride = 0}, 1); }),
            "c: stride 0, expected at least 1");
  EXPECT_EQ(refusal_of([&] { Conv2d<float>(device, "c", {.padding = -1}, 1); }),
            "c: padding -1, expected at least 0");
  EXPECT_EQ(refusal_of([&] { UpsampleBilinear<float>(device, "up", 0, 4); }),
            "up: height 0, expected at least 1");
  EXPECT_EQ(refusal_of([&] { MaxPool2d<float>(device, "pool1", 2, 0); }),
            "pool1: stride 0, expected at least 1");
}

TEST(Models, RefuseUnknownNamesAndSizes) {
  Cpu<float> device;
  EXPECT_EQ(refusal_of([&] { make_model<float>("resnet", {}, 10, device, 1); }),
            "model: got 'resnet', expected mlp, cnn, resnet8 or deeplab");
  EXPECT_EQ(refusal_of([&] { make_model<float>("mlp", {}, 0, device, 1); }),
            "mlp: classes 0, expected at least 1");
  EXPECT_EQ(refusal_of([&] {
              make_model<float>("cnn", {1, 3, 28}, 10, device, 1);
            }),
            "cnn: image height 3, expected at least 4");
}

}  // namespace
}  // namespace ddproof::testing
