// Modules one after another: what a container passes on, and parameters that several layers share.
#include "reference/model/sequential.h"

#include <gtest/gtest.h>

#include "reference/compute/cpu.h"

namespace ddproof {
namespace {

// A layer that passes its input on and notes what it was told.
class Probe final : public Module<float> {
 public:
  explicit Probe(std::vector<Parameter<float>*> parameters, ModuleBuffer<float>* buffer = nullptr)
      : parameters_(std::move(parameters)), buffer_(buffer) {}

  const Tensor<float>& forward(const Tensor<float>& input) override { return input; }
  const Tensor<float>& backward(const Tensor<float>& output_gradient,
                                const GradientReady<float>& ready) override {
    if (!used) return output_gradient;
    for (Parameter<float>* parameter : parameters_) {
      parameter->gradient.span()[0] += 1;
      internal::report_ready(*parameter, ready);
    }
    return output_gradient;
  }
  void set_training(bool value) override { training = value; }
  std::vector<Parameter<float>*> parameters() override { return parameters_; }
  std::vector<Parameter<float>*> unused_parameters() override {
    return used ? std::vector<Parameter<float>*>{} : parameters_;
  }
  std::vector<ModuleBuffer<float>*> buffers() override {
    return buffer_ != nullptr ? std::vector{buffer_} : std::vector<ModuleBuffer<float>*>{};
  }

  bool used = true;
  bool training = true;

 private:
  std::vector<Parameter<float>*> parameters_;
  ModuleBuffer<float>* buffer_;
};

class SequentialOfThree : public ::testing::Test {
 protected:
  SequentialOfThree() {
    std::vector<std::unique_ptr<Module<float>>> modules;
    for (const auto& held : {std::vector{&a_}, std::vector{&b_, &a_}, std::vector{&c_}}) {
      auto probe = std::make_unique<Probe>(held, held[0] == &b_ ? &mean_ : nullptr);
      probes_.push_back(probe.get());
      modules.push_back(std::move(probe));
    }
    model_ = std::make_unique<Sequential<float>>(std::move(modules));
  }
  Parameter<float> make(const char* name) {
    return {name, Tensor<float>(device_, {1}), Tensor<float>(device_, {1})};
  }
  // In the order of their reports, with the value that the gradient then had.
  std::vector<std::string> reports() {
    const Tensor<float> tensor(device_, {1, 1});
    std::vector<std::string> result;
    zero_grad(*model_);
    model_->forward(tensor);
    model_->backward(tensor, [&](Parameter<float>& parameter) {
      result.push_back(parameter.name + "=" +
                       std::to_string(static_cast<int>(parameter.gradient.span()[0])));
    });
    return result;
  }
  using Names = std::vector<std::string>;

  Cpu<float> device_;
  Parameter<float> a_ = make("a");
  Parameter<float> b_ = make("b");
  Parameter<float> c_ = make("c");
  ModuleBuffer<float> mean_{"mean", Tensor<float>(device_, {1})};
  std::vector<Probe*> probes_;
  std::unique_ptr<Sequential<float>> model_;
};

TEST_F(SequentialOfThree, ASharedParameterCountsOnceAndIsReadyWhenItsGradientIsComplete) {
  EXPECT_EQ(model_->parameters(), (std::vector{&a_, &b_, &c_}));
  EXPECT_EQ(reports(), (Names{"c=1", "b=1", "a=2"}));
}

TEST_F(SequentialOfThree, ASharedParameterIsReadyWithTheLastLayerThatUsedIt) {
  probes_[0]->used = false;
  EXPECT_EQ(reports(), (Names{"c=1", "b=1", "a=1"}));
  EXPECT_TRUE(model_->unused_parameters().empty());
}

TEST_F(SequentialOfThree, AParameterIsUnusedWhenNoLayerUsedIt) {
  probes_[0]->used = false;
  probes_[1]->used = false;
  EXPECT_EQ(model_->unused_parameters(), (std::vector{&a_, &b_}));
  EXPECT_EQ(reports(), (Names{"c=1"}));
}

TEST_F(SequentialOfThree, EveryLayerHearsOfEvaluation) {
  model_->set_training(false);
  for (const Probe* probe : probes_) EXPECT_FALSE(probe->training);
}

TEST_F(SequentialOfThree, HasTheBuffersOfItsLayers) {
  EXPECT_EQ(model_->buffers(), (std::vector{&mean_}));
}

}  // namespace
}  // namespace ddproof
