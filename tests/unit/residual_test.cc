// A sum of two branches, with exact numbers.
#include "reference/model/residual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reference/compute/cpu.h"
#include "reference/model/batch_norm.h"
#include "reference/model/linear.h"

namespace ddproof {
namespace {

std::unique_ptr<Module<float>> times(Device<float>& device, const std::string& name, float factor) {
  auto layer = std::make_unique<Linear<float>>(device, name, 1, 1, 1);
  layer->parameters()[0]->value.span()[0] = factor;
  layer->parameters()[1]->value.span()[0] = 0;
  return layer;
}

class ResidualOfOne : public ::testing::Test {
 protected:
  float forward(Residual<float>& module, float value) {
    x_.span()[0] = value;
    return module.forward(x_).span()[0];
  }
  float backward(Residual<float>& module, float value) {
    dy_.span()[0] = value;
    return module
        .backward(dy_, [&](Parameter<float>& parameter) { ready_.push_back(parameter.name); })
        .span()[0];
  }

  Cpu<float> device_;
  Tensor<float> x_{device_, {1, 1}};
  Tensor<float> dy_{device_, {1, 1}};
  std::vector<std::string> ready_;
};

TEST_F(ResidualOfOne, WithoutAShortcutAddsTheInput) {
  Residual<float> module(times(device_, "a", 3), nullptr);
  EXPECT_EQ(forward(module, 5), 3 * 5 + 5);
  EXPECT_EQ(backward(module, 7), 3 * 7 + 7);
}

TEST_F(ResidualOfOne, AddsBothBranchesAndTheirGradients) {
  Residual<float> module(times(device_, "a", 3), times(device_, "b", -2));
  EXPECT_EQ(forward(module, 5), 3 * 5 - 2 * 5);
  EXPECT_EQ(backward(module, 7), 3 * 7 - 2 * 7);
  EXPECT_EQ(ready_, (std::vector<std::string>{"b.bias", "b.weight", "a.bias", "a.weight"}));
  EXPECT_EQ(module.parameters()[0]->name, "a.weight");
  EXPECT_EQ(module.parameters()[0]->gradient.span()[0], 7 * 5);
  EXPECT_EQ(module.parameters()[2]->gradient.span()[0], 7 * 5);
}

TEST_F(ResidualOfOne, LeavesOutTheGradientOfTheInputUnlessAsked) {
  Residual<float> module(times(device_, "a", 3), times(device_, "b", -2));
  module.set_input_gradient_needed(false);
  forward(module, 5);
  EXPECT_EQ(module.backward(dy_, {}).count(), 0);
}

TEST_F(ResidualOfOne, BothBranchesHearOfEvaluation) {
  Residual<float> module(
      std::make_unique<BatchNorm<float>>(device_, "a", BatchNormOptions{.eps = 0}),
      std::make_unique<BatchNorm<float>>(device_, "b", BatchNormOptions{.eps = 0}));
  module.set_training(false);
  EXPECT_EQ(forward(module, 5), 10);
  ASSERT_EQ(module.buffers().size(), 4u);
  EXPECT_EQ(module.buffers()[2]->name, "b.running_mean");
}

}  // namespace
}  // namespace ddproof
