// Which update of Adam an operation computes. Values.
#pragma once

#include <cstdint>

namespace ddproof {

// Which of the update's terms there are. Absent terms are not computed: 0 * infinity never appears.
struct AdamRule {
  enum class Decay : std::uint8_t {
    kNone,
    kGradient,  // Adam: added to the gradient
    kWeight,    // AdamW: the weight shrinks, decoupled from the gradient
  };
  Decay decay = Decay::kNone;
  bool amsgrad = false;
};

template <class T>
struct AdamFactors {
  T decay;  // kGradient: weight_decay; kWeight: 1 - lr * weight_decay
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T sqrt_correction;  // sqrt(1 - beta2^updates)
  T eps;
  T minus_step_size;  // -lr / (1 - beta1^updates)
};

// What is kept of each element between updates, all zero at first. Pointers to `count` elements;
// the last one may be null without amsgrad.
template <class T>
struct AdamState {
  T* exp_avg;
  T* exp_avg_sq;
  T* max_exp_avg_sq;
};

}  // namespace ddproof
