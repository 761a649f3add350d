// Stochastic gradient descent: torch.optim.SGD, bit for bit in float and double.
//
//   g = gradient + weight_decay * w
//   b = g on the first step of a parameter, else momentum * b + (1 - dampening) * g
//   g = nesterov ? g + momentum * b : b          (only with momentum)
//   w = w - lr * g
//
// b is the parameter's momentum buffer.
// Each "a + s * b" is one fused multiply-add, as in PyTorch's kernels, so the bits are the same on
// every processor.
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/compute/scalar.h"
#include "reference/compute/sgd_rule.h"
#include "reference/optim/optimizer.h"

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

template <class T>
class Sgd final : public Optimizer<T> {
 public:
  // Requires: the parameters outlive the optimizer and keep their shapes.
  // Throws ConfigError as validate() does, and when there is no parameter.
  Sgd(std::vector<Parameter<T>*> parameters, const SgdOptions& options)
      : Optimizer<T>("SGD", std::move(parameters)), options_(options) {
    validate(options);
  }

  std::string_view name() const override { return "sgd"; }
  void update(std::size_t i) override;

  double learning_rate() const override { return options_.lr; }
  void set_learning_rate(double lr) override {
    SgdOptions changed = options_;
    changed.lr = lr;
    validate(changed);
    options_ = changed;
  }

  StateLayout state_layout() const override { return {.tensors = {"momentum_buffer"}}; }

 private:
  SgdOptions options_;
};

template <class T>
void Sgd<T>::update(std::size_t i) {
  const SgdFactors<T> factors{
      .weight_decay = from_real<T>(options_.weight_decay),
      .momentum = from_real<T>(options_.momentum),
      .one_minus_dampening = from_real<T>(1 - options_.dampening),
      .minus_lr = from_real<T>(-options_.lr),
  };
  Parameter<T>& parameter = *this->parameters()[i];
  SgdRule rule{.decays = options_.weight_decay != 0, .nesterov = options_.nesterov};
  T* buffer = nullptr;
  if (options_.momentum != 0) {
    const bool is_first = this->state()[i].tensors.empty();
    rule.momentum = is_first ? SgdRule::Momentum::kFirst : SgdRule::Momentum::kRunning;
    buffer = this->state_with_tensors(i).tensors[0].data();
  }
  parameter.value.device().sgd_update(rule, factors, parameter.value.data(),
                                      parameter.gradient.data(), buffer, parameter.value.count());
}

}  // namespace ddproof
