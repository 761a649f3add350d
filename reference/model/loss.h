// Softmax cross-entropy over class indices, as torch.nn.functional.cross_entropy.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>

#include "reference/model/layer.h"

namespace ddproof {

enum class Reduction { kMean, kSum };

struct CrossEntropyOptions {
  Reduction reduction = Reduction::kMean;  // mean over the rows that are not ignored
  std::int64_t ignore_index = -100;        // rows with this target count for nothing
};

namespace internal {

// Throws ConfigError "cross-entropy target: row 3 has 17, expected 0 to 9 or ignore_index -100".
// Returns the targets with -1 for ignored rows.
std::vector<std::int64_t> check_targets(std::span<const std::int64_t> targets, std::int64_t classes,
                                        std::int64_t ignore_index);

}  // namespace internal

// Keeps what backward needs from the last forward. Threads: one task at a time.
template <class T>
class SoftmaxCrossEntropy {
 public:
  explicit SoftmaxCrossEntropy(CrossEntropyOptions options = {}) : options_(options) {}

  // Waits for nothing.
  // Requires: logits [rows, classes] with classes >= 1 and as many targets as rows; targets in
  // [0, classes) or equal to ignore_index. Throws ConfigError otherwise, naming the row.
  void forward(const Tensor<T>& logits, std::span<const std::int64_t> targets) {
    check_shapes(logits, targets);
    const std::vector<std::int64_t> checked =
        internal::check_targets(targets, logits.size(1), options_.ignore_index);
    counted_ = 0;
    for (std::int64_t target : checked) counted_ += target >= 0 ? 1 : 0;
    Device<T>& device = logits.device();
    internal::ensure_shape(losses_, device, {logits.size(0)});
    internal::ensure_shape(gradient_, device, logits.shape());
    device.softmax_cross_entropy(logits.size(0), logits.size(1), logits.data(), checked.data(),
                                 losses_.data(), gradient_.data());
    row_losses_.reset();
  }

  // d loss / d logits of the last forward, times `scale`; valid until the next forward.
  // For the mean each row is multiplied by scale / counted(), rounded once from double.
  const Tensor<T>& backward(double scale = 1) {
    const bool mean = options_.reduction == Reduction::kMean && counted_ > 0;
    const double factor = mean ? scale / static_cast<double>(counted_) : scale;
    internal::ensure_shape(scaled_gradient_, gradient_.device(), gradient_.shape());
    gradient_.device().scaled_copy(scaled_gradient_.data(), gradient_.data(), from_real<T>(factor),
                                   gradient_.count());
    return scaled_gradient_;
  }

  // Rows of the last forward that were not ignored.
  std::int64_t counted() const { return counted_; }
  // Each row's loss in the last forward, 0 where ignored. Waits for the device.
  std::span<const T> row_losses() {
    if (!row_losses_) row_losses_ = to_host(losses_);
    return *row_losses_;
  }
  // The reduced loss of the last forward. Row losses are added in row order. All rows ignored: NaN
  // for the mean and 0 for the sum, as in PyTorch. Waits for the device.
  T value() {
    T sum{};
    for (const T& loss : row_losses()) sum = sum + loss;
    if (options_.reduction == Reduction::kSum) return sum;
    if (counted_ == 0) return from_real<T>(std::numeric_limits<double>::quiet_NaN());
    return sum / from_integer<T>(counted_);
  }

 private:
  static void check_shapes(const Tensor<T>& logits, std::span<const std::int64_t> targets) {
    Shape expected = {static_cast<std::int64_t>(targets.size()), 1};
    if (logits.shape().size() == 2 && logits.size(1) >= 1) expected[1] = logits.size(1);
    internal::check_input("cross-entropy", logits.shape(), expected);
  }

  CrossEntropyOptions options_;
  std::int64_t counted_ = 0;
  std::optional<std::vector<T>> row_losses_;  // once they were asked for
  Tensor<T> losses_;
  Tensor<T> gradient_;
  Tensor<T> scaled_gradient_;
};

// Rows whose first largest logit is at the target; a target outside the classes never matches.
// Requires: logits [rows, classes], as many targets as rows.
template <class T>
std::int64_t count_correct(const Tensor<T>& logits, std::span<const std::int64_t> targets) {
  DDPROOF_CHECK(logits.size(0) == static_cast<std::int64_t>(targets.size()));
  const std::int64_t classes = logits.size(1);
  const std::vector<T> host = to_host(logits);
  std::int64_t correct = 0;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const T* values = host.data() + static_cast<std::int64_t>(row) * classes;
    std::int64_t best = 0;
    for (std::int64_t j = 1; j < classes; ++j) {
      if (values[j] > values[best]) best = j;
    }
    if (best == targets[row]) ++correct;
  }
  return correct;
}

}  // namespace ddproof
