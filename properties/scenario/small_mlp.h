// The model that ranks of a scenario train: two linear layers with a ReLU between them. Backward
// may be told to leave the first out, as when its output was detached.
//
// Threads: one task at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "reference/model/activation.h"
#include "reference/model/linear.h"
#include "reference/model/sequential.h"

namespace ddproof::scenario {

class SmallMlp final : public Module<float> {
 public:
  static constexpr std::int64_t kFeatures = 4;
  static constexpr std::int64_t kClasses = 3;

  // Requires: `device` outlives this. The same parameters for the same seed.
  SmallMlp(Device<float>& device, std::uint64_t seed)
      : first_(layers_below(device, seed)), last_(device, "fc2", kHidden, kClasses, seed) {
    first_.set_input_gradient_needed(false);
    parameters_ = first_.parameters();
    for (Parameter<float>* parameter : last_.parameters()) parameters_.push_back(parameter);
  }

  // Whether backward leaves the first layer's parameters without a gradient. False at first.
  void set_first_layer_unused(bool unused) { first_layer_unused_ = unused; }

  const Tensor<float>& forward(const Tensor<float>& input) override {
    return last_.forward(first_.forward(input));
  }
  // The input's gradient is left out.
  const Tensor<float>& backward(const Tensor<float>& output_gradient,
                                const GradientReady<float>& ready) override {
    const Tensor<float>& gradient = last_.backward(output_gradient, ready);
    return first_layer_unused_ ? none_ : first_.backward(gradient, ready);
  }
  std::vector<Parameter<float>*> parameters() override { return parameters_; }
  std::vector<Parameter<float>*> unused_parameters() override {
    return first_layer_unused_ ? first_.parameters() : std::vector<Parameter<float>*>{};
  }

 private:
  static constexpr std::int64_t kHidden = 8;

  static std::vector<std::unique_ptr<Module<float>>> layers_below(Device<float>& device,
                                                                  std::uint64_t seed) {
    std::vector<std::unique_ptr<Module<float>>> layers;
    layers.push_back(std::make_unique<Linear<float>>(device, "fc1", kFeatures, kHidden, seed));
    layers.push_back(std::make_unique<ReLU<float>>(device));
    return layers;
  }

  Sequential<float> first_;
  Linear<float> last_;
  std::vector<Parameter<float>*> parameters_;
  Tensor<float> none_;
  bool first_layer_unused_ = false;
};

}  // namespace ddproof::scenario
