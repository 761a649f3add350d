// Which update of SGD an operation computes. Values.
#pragma once

#include <cstdint>

namespace ddproof {

// Which of the update's terms there are. Absent terms are not computed: 0 * infinity never appears.
struct SgdRule {
  enum class Momentum : std::uint8_t { kNone, kFirst, kRunning };
  bool decays = false;
  Momentum momentum = Momentum::kNone;
  bool nesterov = false;
};

template <class T>
struct SgdFactors {
  T weight_decay;
  T momentum;
  T one_minus_dampening;
  T minus_lr;
};

}  // namespace ddproof
