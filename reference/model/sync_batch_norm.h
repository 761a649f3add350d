// Batch norm over the batches of all ranks, as torch.nn.SyncBatchNorm: what one device computes for
// the whole batch, but for the order of sums.
//
// In training forward() is a collective call, one all-gather of 2 * channels + 1 values: this
// rank's mean, variance and count. Ranks may have different counts, and none at all. backward() is
// one all-reduce of 2 * channels sums, for the gradient of the input; the gradients of weight and
// bias stay this rank's own, which DDP averages. In evaluation, and on a single rank, it is
// BatchNorm.
//
// Statistics are combined in double, ranks ascending, by every rank in the same way (Chan, Golub,
// LeVeque, 1983, formula 2.1); so they have the same bits on all ranks. Each rank's own are rounded
// to T when they travel, its count too: in float beyond 2^24 values per channel.
#pragma once

#include <cmath>
#include <concepts>

#include "backends/api/process_group.h"
#include "reference/model/batch_norm.h"

namespace ddproof {

namespace internal {

struct MeanAndVariance {
  double mean = 0;
  double variance = 0;  // biased
};

// Of one channel over all ranks, rank r's values being those at `mean`, `variance` and `count`, in
// `gathered`, r * stride further on. Zeros when all counts are.
template <class T>
MeanAndVariance combine_ranks(const T* mean, const T* variance, const T* count, int ranks,
                              std::int64_t stride) {
  double n = 0, sum = 0, squares = 0;
  for (std::int64_t at = 0; at < ranks * stride; at += stride) {
    n += static_cast<double>(count[at]);
    sum += static_cast<double>(count[at]) * static_cast<double>(mean[at]);
  }
  if (n == 0) return {};
  const double whole = sum / n;
  for (std::int64_t at = 0; at < ranks * stride; at += stride) {
    const double distance = static_cast<double>(mean[at]) - whole;
    squares +=
        static_cast<double>(count[at]) * (static_cast<double>(variance[at]) + distance * distance);
  }
  return {whole, squares / n};
}

}  // namespace internal

template <std::floating_point T>
class SyncBatchNorm final : public BatchNorm<T> {
 public:
  // As BatchNorm. Requires: `group` outlives this; all ranks make the same calls.
  SyncBatchNorm(Device<T>& device, std::string name, const BatchNormOptions& options,
                ProcessGroup& group)
      : BatchNorm<T>(device, std::move(name), options), device_(device), group_(group) {}

 private:
  std::int64_t combine_statistics(Tensor<T>& mean, Tensor<T>& variance,
                                  std::int64_t count) override {
    if (group_.size() == 1) return count;
    const std::int64_t channels = mean.count(), each = 2 * channels + 1;
    internal::ensure_shape(own_, device_, {each});
    internal::ensure_shape(gathered_, device_, {group_.size() * each});
    device_.copy(own_.data(), mean.data(), channels);
    device_.copy(own_.data() + channels, variance.data(), channels);
    device_.fill(own_.data() + 2 * channels, 1, from_integer<T>(count));
    group_.all_gather(own_.buffer(), gathered_.buffer(), {.label = this->name() + " statistics"})
        ->wait();
    const std::vector<T> host = to_host(gathered_);
    std::vector<T> combined(static_cast<std::size_t>(2 * channels));
    for (std::int64_t c = 0; c < channels; ++c) {
      const internal::MeanAndVariance of =
          internal::combine_ranks(host.data() + c, host.data() + channels + c,
                                  host.data() + 2 * channels, group_.size(), each);
      combined[static_cast<std::size_t>(c)] = static_cast<T>(of.mean);
      combined[static_cast<std::size_t>(channels + c)] = static_cast<T>(of.variance);
    }
    device_.copy_from_host(mean.data(), combined.data(), channels);
    device_.copy_from_host(variance.data(), combined.data() + channels, channels);
    std::int64_t total = 0;
    for (int rank = 0; rank < group_.size(); ++rank) {
      total += std::llround(host[static_cast<std::size_t>(rank * each + 2 * channels)]);
    }
    return total;
  }

  void combine_sums(Tensor<T>& sums) override {
    if (group_.size() == 1) return;
    group_.all_reduce(sums.buffer(), ReduceOp::kSum, {.label = this->name() + " sums"})->wait();
  }

  Device<T>& device_;
  ProcessGroup& group_;
  Tensor<T> own_;
  Tensor<T> gathered_;
};

}  // namespace ddproof
