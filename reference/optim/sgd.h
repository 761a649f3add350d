// Stochastic gradient descent: torch.optim.SGD, bit for bit in float and double.
//
//   g = gradient + weight_decay * w
//   b = g on the first step of a parameter, else momentum * b + (1 - dampening) * g
//   g = nesterov ? g + momentum * b : b          (only with momentum)
//   w = w - lr * g
//
// b is the parameter's momentum buffer.
// Each "a + s * b" is one fused multiply-add, as in PyTorch's kernels, so the bits are the same on
// every processor. A parameter without a gradient in this pass is skipped, its momentum included,
// as PyTorch skips grad None.
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/scalar.h"
#include "reference/compute/sgd_rule.h"
#include "reference/compute/tensor.h"
#include "reference/model/module.h"

namespace ddproof {

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

// Throws ConfigError, naming the option, its value and what is allowed, where PyTorch throws
// ValueError, and also on values that are not finite.
void validate(const SgdOptions& options);

// T: float, double, or another scalar of compute/scalar.h.
template <class T>
class Sgd {
 public:
  // Requires: the parameters outlive the optimizer and keep their shapes.
  // Throws ConfigError as validate() does, and when there is no parameter.
  Sgd(std::vector<Parameter<T>*> parameters, const SgdOptions& options);

  // One update of every parameter that has a gradient. Gradients are left as they are.
  void step();

  const SgdOptions& options() const { return options_; }
  // For schedules. Throws ConfigError when lr is negative or not finite.
  void set_learning_rate(double lr);

  const std::vector<Parameter<T>*>& parameters() const { return parameters_; }

  // Momentum buffer of parameters()[i]; none until the first step that used the parameter, and
  // never any without momentum.
  const std::optional<Tensor<T>>& momentum_buffer(std::size_t i) const {
    return momentum_buffers_[i];
  }
  // For restoring a checkpoint: gives parameters()[i] a zero buffer, which the caller fills.
  Tensor<T>& make_momentum_buffer(std::size_t i);
  // Back to the state before the first step.
  void clear_momentum_buffers();

 private:
  std::vector<Parameter<T>*> parameters_;
  SgdOptions options_;
  std::vector<std::optional<Tensor<T>>> momentum_buffers_;
};

template <class T>
Sgd<T>::Sgd(std::vector<Parameter<T>*> parameters, const SgdOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  validate(options);
  if (parameters_.empty()) {
    throw ConfigError("SGD parameters: got none, expected at least one; pass model.parameters()");
  }
  momentum_buffers_.resize(parameters_.size());
}

template <class T>
void Sgd<T>::set_learning_rate(double lr) {
  SgdOptions changed = options_;
  changed.lr = lr;
  validate(changed);
  options_ = changed;
}

template <class T>
void Sgd<T>::step() {
  const SgdFactors<T> factors{
      .weight_decay = from_real<T>(options_.weight_decay),
      .momentum = from_real<T>(options_.momentum),
      .one_minus_dampening = from_real<T>(1 - options_.dampening),
      .minus_lr = from_real<T>(-options_.lr),
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Parameter<T>& parameter = *parameters_[i];
    if (!parameter.has_gradient) continue;
    SgdRule rule{.decays = options_.weight_decay != 0, .nesterov = options_.nesterov};
    T* buffer = nullptr;
    if (options_.momentum != 0) {
      rule.momentum =
          momentum_buffers_[i] ? SgdRule::Momentum::kRunning : SgdRule::Momentum::kFirst;
      buffer = momentum_buffers_[i] ? momentum_buffers_[i]->data() : make_momentum_buffer(i).data();
    }
    parameter.value.device().sgd_update(rule, factors, parameter.value.data(),
                                        parameter.gradient.data(), buffer, parameter.value.count());
  }
}

template <class T>
Tensor<T>& Sgd<T>::make_momentum_buffer(std::size_t i) {
  const Tensor<T>& value = parameters_[i]->value;
  return momentum_buffers_[i].emplace(value.device(), value.shape());
}

template <class T>
void Sgd<T>::clear_momentum_buffers() {
  for (std::optional<Tensor<T>>& buffer : momentum_buffers_) buffer.reset();
}

}  // namespace ddproof
