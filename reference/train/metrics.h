// Loss and accuracy over samples, wherever the samples were: sums that add over batches and ranks,
// so that a global metric is a mean over samples and never a mean of means.
#pragma once

#include <cstdint>
#include <span>

#include "backends/api/process_group.h"
#include "reference/model/loss.h"

namespace ddproof {

struct MetricSums {
  double loss_sum = 0;       // over counted samples
  std::int64_t correct = 0;  // samples whose largest logit is the label's
  std::int64_t samples = 0;  // counted samples: those with a label that is not ignored

  MetricSums& operator+=(const MetricSums& other);
  // Means; NaN when there are no samples.
  double loss() const;
  double accuracy() const;
};

// Of the batch that `loss` saw last. Row losses are added in row order. Waits for the device.
template <class T>
MetricSums metric_sums(SoftmaxCrossEntropy<T>& loss, const Tensor<T>& logits,
                       std::span<const std::int64_t> labels) {
  MetricSums sums;
  for (const T& row : loss.row_losses()) sums.loss_sum += static_cast<double>(row);
  sums.correct = count_correct(logits, labels);
  sums.samples = loss.counted();
  return sums;
}

// The sum over all ranks, equal on all ranks. A collective call, synchronous.
// Requires: fewer than 2^53 samples (the counts travel as doubles, exactly).
MetricSums sum_over_ranks(ProcessGroup& group, const MetricSums& local);

}  // namespace ddproof
