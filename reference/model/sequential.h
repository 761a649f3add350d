// Modules one after another.
#pragma once

#include <memory>

#include "reference/model/layer.h"

namespace ddproof {

template <class T>
class Sequential final : public Module<T> {
 public:
  // Requires: at least one module, none null, parameter names unique.
  explicit Sequential(std::vector<std::unique_ptr<Module<T>>> modules)
      : modules_(std::move(modules)) {
    DDPROOF_CHECK(!modules_.empty());
    for (const auto& module : modules_) {
      for (Parameter<T>* parameter : module->parameters()) parameters_.push_back(parameter);
    }
  }

  const Tensor<T>& forward(const Tensor<T>& input) override {
    const Tensor<T>* output = &input;
    for (const auto& module : modules_) output = &module->forward(*output);
    return *output;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override {
    const Tensor<T>* gradient = &output_gradient;
    for (std::size_t i = modules_.size(); i > last_; --i) {
      gradient = &modules_[i - 1]->backward(*gradient, ready);
    }
    return *gradient;
  }

  // Without: backward stops at the first module that has parameters.
  void set_input_gradient_needed(bool needed) override {
    last_ = 0;
    while (!needed && last_ + 1 < modules_.size() && modules_[last_]->parameters().empty()) ++last_;
    modules_[last_]->set_input_gradient_needed(needed);
    for (std::size_t i = 0; needed && i < modules_.size(); ++i) {
      modules_[i]->set_input_gradient_needed(true);
    }
  }

  std::vector<Parameter<T>*> parameters() override { return parameters_; }

 private:
  std::vector<std::unique_ptr<Module<T>>> modules_;
  std::vector<Parameter<T>*> parameters_;
  std::size_t last_ = 0;  // where backward ends
};

}  // namespace ddproof
