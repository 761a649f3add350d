#include "reference/ddp/step_timer.h"

#include <algorithm>

namespace ddproof {
namespace {

constexpr std::int64_t kMeasuredAtFirst = 10;
constexpr std::int64_t kMeasuredEach = 100;

}  // namespace

void StepTimer::communication_ended() {
  ++iteration_;
  if (iteration_ > kMeasuredAtFirst && iteration_ % kMeasuredEach != 0) return;
  const TimePoint now = runtime_.now();
  last_ = {.forward_compute = backward_ - forward_,
           .backward_compute = computed_ - backward_,
           .backward_comm = now - communication_,
           .backward_compute_comm_overlap = std::max(Duration{0}, computed_ - communication_)};
  ++measured_;
  sum_.forward_compute += last_.forward_compute;
  sum_.backward_compute += last_.backward_compute;
  sum_.backward_comm += last_.backward_comm;
  sum_.backward_compute_comm_overlap += last_.backward_compute_comm_overlap;
}

StepTimes StepTimer::average() const {
  if (measured_ == 0) return {};
  return {.forward_compute = sum_.forward_compute / measured_,
          .backward_compute = sum_.backward_compute / measured_,
          .backward_comm = sum_.backward_comm / measured_,
          .backward_compute_comm_overlap = sum_.backward_compute_comm_overlap / measured_};
}

}  // namespace ddproof
