// Branches side by side, with exact numbers.
#include "reference/model/concatenate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reference/compute/cpu.h"
#include "reference/model/batch_norm.h"
#include "reference/model/conv2d.h"
#include "tests/support/copy_of.h"

namespace ddproof {
namespace {

// A 1x1 convolution that multiplies by the given factors, one for each of its channels.
std::unique_ptr<Module<float>> times(Device<float>& device, const std::string& name,
                                     const std::vector<float>& factors) {
  const auto channels = static_cast<std::int64_t>(factors.size());
  auto layer = std::make_unique<Conv2d<float>>(
      device, name, Conv2dOptions{.out_channels = channels, .bias = false}, 1);
  std::copy(factors.begin(), factors.end(), layer->parameters()[0]->value.data());
  return layer;
}

class ConcatenateOfTwo : public ::testing::Test {
 protected:
  ConcatenateOfTwo() {
    std::vector<std::unique_ptr<Module<float>>> branches;
    branches.push_back(times(device_, "a", {2}));
    branches.push_back(times(device_, "b", {-3, 5}));
    module_ = std::make_unique<Concatenate<float>>(std::move(branches));
    x_.span()[0] = 1, x_.span()[1] = 10;
  }
  using Values = std::vector<float>;

  Cpu<float> device_;
  std::unique_ptr<Concatenate<float>> module_;
  Tensor<float> x_{device_, {2, 1, 1, 1}};
};

TEST_F(ConcatenateOfTwo, PutsChannelsSideBySide) {
  const Tensor<float>& y = module_->forward(x_);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 1, 1}));
  EXPECT_EQ(copy_of(y), (Values{2, -3, 5, 20, -30, 50}));
}

TEST_F(ConcatenateOfTwo, AddsTheGradientsOfItsBranches) {
  module_->forward(x_);
  Tensor<float> dy(device_, {2, 3, 1, 1});
  const Values gradient = {1, 2, 3, 4, 5, 6};
  std::copy(gradient.begin(), gradient.end(), dy.data());
  std::vector<std::string> ready;
  const Tensor<float>& dx =
      module_->backward(dy, [&](Parameter<float>& parameter) { ready.push_back(parameter.name); });
  EXPECT_EQ(copy_of(dx), (Values{2 * 1 - 3 * 2 + 5 * 3, 2 * 4 - 3 * 5 + 5 * 6}));
  EXPECT_EQ(ready, (std::vector<std::string>{"b.weight", "a.weight"}));
  EXPECT_EQ(copy_of(module_->parameters()[0]->gradient), (Values{1 * 1 + 10 * 4}));
  EXPECT_EQ(copy_of(module_->parameters()[1]->gradient), (Values{1 * 2 + 10 * 5, 1 * 3 + 10 * 6}));
}

TEST_F(ConcatenateOfTwo, LeavesOutTheGradientOfTheInputUnlessAsked) {
  module_->set_input_gradient_needed(false);
  module_->forward(x_);
  EXPECT_EQ(module_->backward(Tensor<float>(device_, {2, 3, 1, 1}), {}).count(), 0);
}

TEST_F(ConcatenateOfTwo, ItsBranchesHearOfEvaluation) {
  std::vector<std::unique_ptr<Module<float>>> branches;
  for (const char* name : {"a", "b"}) {
    branches.push_back(
        std::make_unique<BatchNorm<float>>(device_, name, BatchNormOptions{.eps = 0}));
  }
  Concatenate<float> module(std::move(branches));
  module.set_training(false);
  EXPECT_EQ(copy_of(module.forward(x_)), (Values{1, 1, 10, 10}));
  ASSERT_EQ(module.buffers().size(), 4u);
  EXPECT_EQ(module.buffers()[2]->name, "b.running_mean");
}

}  // namespace
}  // namespace ddproof
