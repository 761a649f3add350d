// Modules one after another. They may share parameters: such a one is ready when the first module
// that used it has added its part.
#pragma once

#include <algorithm>
#include <map>
#include <memory>

#include "reference/model/layer.h"

namespace ddproof {

template <class T>
class Sequential final : public Module<T> {
 public:
  // Requires: at least one module, none null; names unique, but of shared parameters.
  explicit Sequential(std::vector<std::unique_ptr<Module<T>>> modules)
      : modules_(std::move(modules)) {
    DDPROOF_CHECK(!modules_.empty());
    for (const auto& module : modules_) {
      for (Parameter<T>* parameter : module->parameters()) {
        const bool is_new = std::ranges::find(parameters_, parameter) == parameters_.end();
        is_new ? parameters_.push_back(parameter) : void(shares_ = true);
      }
      for (ModuleBuffer<T>* buffer : module->buffers()) buffers_.push_back(buffer);
    }
  }

  const Tensor<T>& forward(const Tensor<T>& input) override {
    const Tensor<T>* output = &input;
    for (const auto& module : modules_) output = &module->forward(*output);
    return *output;
  }

  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override {
    if (!shares_) return run_backward(output_gradient, ready);
    std::map<Parameter<T>*, int> left = count_uses();
    return run_backward(output_gradient, [&](Parameter<T>& parameter) {
      if (--left[&parameter] == 0 && ready) ready(parameter);
    });
  }

  void set_training(bool training) override {
    for (const auto& module : modules_) module->set_training(training);
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

  std::vector<Parameter<T>*> unused_parameters() override {
    std::vector<Parameter<T>*> result = parameters_;
    const std::map<Parameter<T>*, int> uses = count_uses();
    std::erase_if(result, [&](Parameter<T>* parameter) { return uses.at(parameter) > 0; });
    return result;
  }

  std::vector<ModuleBuffer<T>*> buffers() override { return buffers_; }

 private:
  const Tensor<T>& run_backward(const Tensor<T>& output_gradient, const GradientReady<T>& ready) {
    const Tensor<T>* gradient = &output_gradient;
    for (std::size_t i = modules_.size(); i > last_; --i) {
      gradient = &modules_[i - 1]->backward(*gradient, ready);
    }
    return *gradient;
  }

  // By how many modules the last forward used each parameter.
  std::map<Parameter<T>*, int> count_uses() const {
    std::map<Parameter<T>*, int> uses;
    for (const auto& module : modules_) {
      for (Parameter<T>* parameter : module->parameters()) ++uses[parameter];
      for (Parameter<T>* parameter : module->unused_parameters()) --uses[parameter];
    }
    return uses;
  }

  std::vector<std::unique_ptr<Module<T>>> modules_;
  std::vector<Parameter<T>*> parameters_;
  std::vector<ModuleBuffer<T>*> buffers_;
  bool shares_ = false;   // some parameter is in several modules
  std::size_t last_ = 0;  // where backward ends
};

}  // namespace ddproof
