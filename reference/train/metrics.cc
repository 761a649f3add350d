#include "reference/train/metrics.h"

#include <array>

namespace ddproof {

MetricSums& MetricSums::operator+=(const MetricSums& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  samples += other.samples;
  return *this;
}

// 0/0 is NaN.
double MetricSums::loss() const { return loss_sum / static_cast<double>(samples); }

double MetricSums::accuracy() const {
  return static_cast<double>(correct) / static_cast<double>(samples);
}

MetricSums sum_over_ranks(ProcessGroup& group, const MetricSums& local) {
  std::array<double, 3> sums{local.loss_sum, static_cast<double>(local.correct),
                             static_cast<double>(local.samples)};
  group.all_reduce(Buffer::of(sums), ReduceOp::kSum, {.label = "metrics"})->wait();
  return {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
}

}  // namespace ddproof
