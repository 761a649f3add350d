// Loss scaling: keeps gradients of a narrow type from vanishing, PyTorch's GradScaler for ranks.
//
//   loss scaled by scaler.scale(); backward; then on all ranks
//   if (scaler.unscale(parameters, group)) { clip; optimizer.step(); }
//   scaler.update();
//
// Invariants: whether a step is made is decided over all ranks together, so all make it or none
// does, and their scales stay equal: an infinity on one rank alone is an infinity everywhere.
// Source: Micikevicius et al. 2018, with the dynamic scale of section 3.2.
// Threads: one task at a time.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include "backends/api/process_group.h"
#include "reference/compute/scalar.h"
#include "reference/optim/gradient_sums.h"

namespace ddproof {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

// Throws ConfigError, naming the option, its value and what is allowed.
void validate(const GradScalerOptions& options);

class GradScaler {
 public:
  // What a resumed run needs to go on.
  struct State {
    double scale = 0;
    std::int64_t growth_tracker = 0;  // steps since the scale changed
    bool operator==(const State&) const = default;
  };

  // Throws ConfigError as validate() does.
  explicit GradScaler(const GradScalerOptions& options);

  // What the loss, and so each gradient, is multiplied by.
  double scale() const { return state_.scale; }

  // Divides the gradients that there are by the scale: multiplies by its reciprocal, rounded. False
  // where some gradient is not finite on some rank: skip the step then. Waits for the device. A
  // collective call where `group` is not null.
  // Throws ConfigError on a second call before update().
  template <std::floating_point T>
  bool unscale(const std::vector<Parameter<T>*>& parameters, ProcessGroup* group);

  // After the step, or where it was skipped. The scale shrinks after a skipped step, and grows
  // after growth_interval steps in a row, unless it would leave the range of float.
  // Throws ConfigError without an unscale() before, and when the scale has shrunk out of the range
  // of float: then it is not the scale that makes gradients infinite.
  void update();

  const State& state() const { return state_; }
  // Throws ConfigError unless the scale is finite and above 0, the tracker in its range.
  void load_state(const State& state);

 private:
  void begin_unscale();
  // Whether it is so on no rank.
  bool agree(bool found_nonfinite, ProcessGroup* group);

  GradScalerOptions options_;
  State state_;
  bool unscaled_ = false;
  bool found_nonfinite_ = false;
};

template <std::floating_point T>
bool GradScaler::unscale(const std::vector<Parameter<T>*>& parameters, ProcessGroup* group) {
  begin_unscale();
  const std::vector<Parameter<T>*> reached = with_gradient(parameters);
  const T reciprocal = from_real<T>(1 / scale());
  const std::vector<double> zeros = gradient_sums(LaneSum::kZeros, reached);
  for (Parameter<T>* parameter : reached) {
    Tensor<T>& gradient = parameter->gradient;
    gradient.device().scaled_copy(gradient.data(), gradient.data(), reciprocal, gradient.count());
  }
  const bool nonfinite = std::ranges::any_of(zeros, [](double zero) { return zero != 0; });
  return agree(nonfinite, group);
}

}  // namespace ddproof
