// Adam and AdamW: torch.optim.Adam and torch.optim.AdamW, bit for bit in float and double.
//
//   g = gradient + weight_decay * w                   (Adam)
//   w = w * (1 - lr * weight_decay)                   (AdamW: decoupled from the gradient)
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + ((1 - beta2) * g) * g
//   x = amsgrad ? the largest v so far : v
//   w = w + ((-lr / (1 - beta1^t)) * m) / (sqrt(x) / sqrt(1 - beta2^t) + eps)
//
// m, v and the largest v are the parameter's exp_avg, exp_avg_sq and max_exp_avg_sq; t counts its
// own updates. Sources: Kingma and Ba 2015; Loshchilov and Hutter 2019; Reddi et al. 2018.
// Each "a + s * b" is one fused multiply-add, as in PyTorch's kernels; the factors are computed in
// double and rounded once. So all devices have the same bits. The powers are the C library's: with
// another one the last bit of a factor may differ.
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/compute/adam_rule.h"
#include "reference/compute/scalar.h"
#include "reference/optim/optimizer.h"

namespace ddproof {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // PyTorch's AdamW has 0.01 where none is given
  bool amsgrad = false;
  bool decoupled = false;  // AdamW
};

// Throws ConfigError, naming the option, its value and what is allowed, where PyTorch throws
// ValueError, and also on values that are not finite.
void validate(const AdamOptions& options);

namespace internal {

// Of update number `updates`, before they are rounded to the scalar.
AdamFactors<double> adam_factors(const AdamOptions& options, std::int64_t updates);

}  // namespace internal

// T: float, double, or another scalar with an order, a quotient and a square root.
template <class T>
class Adam final : public Optimizer<T> {
 public:
  // Requires: the parameters outlive the optimizer and keep their shapes.
  // Throws ConfigError as validate() does, and when there is no parameter.
  Adam(std::vector<Parameter<T>*> parameters, const AdamOptions& options)
      : Optimizer<T>(options.decoupled ? "AdamW" : "Adam", std::move(parameters)),
        options_(options) {
    validate(options);
  }

  std::string_view name() const override { return options_.decoupled ? "adamw" : "adam"; }
  void update(std::size_t i) override;

  double learning_rate() const override { return options_.lr; }
  void set_learning_rate(double lr) override {
    AdamOptions changed = options_;
    changed.lr = lr;
    validate(changed);
    options_ = changed;
  }

  StateLayout state_layout() const override {
    StateLayout layout{.tensors = {"exp_avg", "exp_avg_sq"}, .counts_updates = true};
    if (options_.amsgrad) layout.tensors.push_back("max_exp_avg_sq");
    return layout;
  }

 private:
  AdamRule rule() const {
    AdamRule rule{.amsgrad = options_.amsgrad};
    if (options_.weight_decay == 0) return rule;
    rule.decay = options_.decoupled ? AdamRule::Decay::kWeight : AdamRule::Decay::kGradient;
    return rule;
  }

  AdamOptions options_;
};

template <class T>
void Adam<T>::update(std::size_t i) {
  Parameter<T>& parameter = *this->parameters()[i];
  ParameterState<T>& state = this->state_with_tensors(i);
  ++state.updates;
  const AdamFactors<double> factors = internal::adam_factors(options_, state.updates);
  const AdamFactors<T> rounded{
      .decay = from_real<T>(factors.decay),
      .beta1 = from_real<T>(factors.beta1),
      .one_minus_beta1 = from_real<T>(factors.one_minus_beta1),
      .beta2 = from_real<T>(factors.beta2),
      .one_minus_beta2 = from_real<T>(factors.one_minus_beta2),
      .sqrt_correction = from_real<T>(factors.sqrt_correction),
      .eps = from_real<T>(factors.eps),
      .minus_step_size = from_real<T>(factors.minus_step_size),
  };
  parameter.value.device().adam_update(
      rule(), rounded, parameter.value.data(), parameter.gradient.data(),
      {.exp_avg = state.tensors[0].data(),
       .exp_avg_sq = state.tensors[1].data(),
       .max_exp_avg_sq = options_.amsgrad ? state.tensors[2].data() : nullptr},
      parameter.value.count());
}

}  // namespace ddproof
