// How long the parts of a step take, on the Runtime's clock: PyTorch's run-time statistics, in
// nanoseconds, for steps 1 to 10 and each 100th after them.
//
// The host's view: a device may still compute when a part ends here. Source: PyTorch 1.13.1's
// Logger, SEMANTICS section 3.5. Threads: one task at a time.
#pragma once

#include <cstdint>

#include "backends/api/runtime.h"

namespace ddproof {

struct StepTimes {
  Duration forward_compute{0};
  Duration backward_compute{0};
  Duration backward_comm{0};                  // from the first bucket to the end of the last
  Duration backward_compute_comm_overlap{0};  // of it, before backward's own work had ended
};

class StepTimer {
 public:
  explicit StepTimer(Runtime& runtime) : runtime_(runtime) {}

  void forward_begins() { forward_ = runtime_.now(); }
  void backward_begins() { backward_ = communication_ = runtime_.now(); }
  void communication_begins() { communication_ = runtime_.now(); }
  void backward_computed() { computed_ = runtime_.now(); }
  void communication_ended();

  // Reduced steps so far.
  std::int64_t iteration() const { return iteration_; }
  // Of the last step that was measured, and the mean of all those; zeros before the first.
  const StepTimes& last() const { return last_; }
  StepTimes average() const;

 private:
  Runtime& runtime_;
  TimePoint forward_{0};
  TimePoint backward_{0};
  TimePoint communication_{0};
  TimePoint computed_{0};
  std::int64_t iteration_ = 0;
  std::int64_t measured_ = 0;
  StepTimes last_;
  StepTimes sum_;
};

}  // namespace ddproof
