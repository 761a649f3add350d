// A device: owns memory and the operations that the models need.
//
// One instance belongs to one rank. Operations are queued in order; on the CPU they are done when
// the call returns. Nothing waits for them but copy_to_host(). Memory that is given back may still
// be in use by what is queued. Implementations: Cpu<T> (cpu.h), Cuda<T> (cuda/cuda.h).
//
// The numeric contract, the same on every device: each element of a result is one chain of fused
// multiply-adds in a fixed order, which the operation states. So its bits depend on its own inputs
// alone: not on the instruction set, the compiler, the batch that it was computed in, or how a
// batch was cut. Padding takes part in the chain as zeros. The payload of a NaN is not promised.
//
// Pointers hold as many elements as the shape says and do not overlap, unless stated otherwise.
#pragma once

#include <cstdint>
#include <string_view>

#include "reference/compute/adam_rule.h"
#include "reference/compute/lane_sums.h"
#include "reference/compute/sgd_rule.h"
#include "reference/compute/shapes.h"

namespace ddproof {

// Of each channel, for batch norm.
template <class T>
struct ChannelStatistics {
  const T* mean;
  const T* inverse_deviation;
};

template <class T>
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  // The queue that operations enter, for Buffers of this device's memory (backends/api/buffer.h);
  // null where that is the host's memory.
  virtual void* stream() const { return nullptr; }
  // Zero-filled, 64-byte aligned; count 0 is fine.
  virtual T* allocate(std::int64_t count) = 0;
  virtual void deallocate(T* data) = 0;
  virtual void fill(T* data, std::int64_t count, T value) = 0;
  virtual void copy(T* to, const T* from, std::int64_t count) = 0;
  // to[i] = from[i] * factor, one rounding each. to may be from.
  virtual void scaled_copy(T* to, const T* from, T factor, std::int64_t count) = 0;
  // to[i] = fma(factor, from[i], to[i]).
  virtual void axpy(T* to, const T* from, T factor, std::int64_t count) = 0;
  // Between this device's memory and the host's. copy_to_host() waits for all that is queued;
  // copy_from_host() returns when the host's memory may change, the copy itself is queued.
  virtual void copy_to_host(T* host, const T* device, std::int64_t count) = 0;
  virtual void copy_from_host(T* device, const T* host, std::int64_t count) = 0;

  // y = x w^T + bias. Chain: from bias, `in` ascending.
  virtual void linear_forward(const LinearShape& shape, const T* x, const T* w, const T* bias,
                              T* y) = 0;
  // dx = dy w. Chain: from zero, `out` ascending.
  virtual void linear_backward_input(const LinearShape& shape, const T* dy, const T* w, T* dx) = 0;
  // dw += dy^T x and dbias += column sums of dy. Chain: from what is there, samples ascending.
  virtual void linear_backward_parameters(const LinearShape& shape, const T* dy, const T* x, T* dw,
                                          T* dbias) = 0;

  // Chain: from bias, over (in channel, kernel row, kernel column) ascending. `bias` may be null:
  // zeros.
  virtual void conv2d_forward(const Conv2dShape& shape, const T* x, const T* w, const T* bias,
                              T* y) = 0;
  // Chain: from zero, over (out channel, kernel row, kernel column) ascending; positions between
  // strides take part as zeros.
  virtual void conv2d_backward_input(const Conv2dShape& shape, const T* dy, const T* w, T* dx) = 0;
  // Adds to dw and dbias. Chain: from what is there, over (sample, output row, output column)
  // ascending. `dbias` may be null.
  virtual void conv2d_backward_parameters(const Conv2dShape& shape, const T* dy, const T* x, T* dw,
                                          T* dbias) = 0;

  // Batch norm. Sums over a channel are a chain over the positions of each sample, from zero, and a
  // sum of these, samples ascending. They, and what is computed from them, are double where T is
  // float, and rounded to T at the end. Requires: T is a floating-point type.
  //
  // mean = sum of x / n; variance = sum of (x - mean)^2 / n, with the mean before it was rounded.
  // Both are zero where n, the values of a channel, is zero.
  virtual void batch_norm_statistics(const BatchNormShape& shape, const T* x, T* mean,
                                     T* variance) = 0;
  // result = 1 / sqrt(variance + eps), in double where T is float, then rounded.
  virtual void inverse_deviations(std::int64_t channels, const T* variance, double eps,
                                  T* result) = 0;
  // y = fma(w, x', bias), where x' = (x - mean) * inverse_deviation. w may be null: ones; bias
  // may be null: zeros.
  virtual void batch_norm_forward(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                  const T* x, const T* w, const T* bias, T* y) = 0;
  // The sums over each channel of dy, and of dy * x'.
  virtual void batch_norm_backward_sums(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                        const T* x, const T* dy, T* sum_dy, T* sum_dy_x) = 0;
  // dx = fma(x', -mean_dy_x, dy - mean_dy) * (inverse_deviation * w). w may be null: ones.
  virtual void batch_norm_backward_input(const BatchNormShape& shape,
                                         const ChannelStatistics<T>& of, const T* x, const T* dy,
                                         const T* w, const T* mean_dy, const T* mean_dy_x,
                                         T* dx) = 0;

  // to[n][column][row] = from[n][row][column].
  virtual void transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, const T* from,
                         T* to) = 0;

  // Bilinear interpolation, as PyTorch's with align_corners False. Along each side an output place
  // lies at (place + 1/2) * in / out - 1/2, at least 0, between the input places `low` and `high`
  // (at the end they are one); `high` weighs what it is away from `low`, computed in double, then
  // rounded, and `low` the rest. Values: fma(high weight, high, low weight * low) along both rows,
  // and of these the same along the column. Requires: T is a floating-point type; no size is 0.
  virtual void bilinear_forward(const BilinearShape& shape, const T* x, T* y) = 0;
  // Chain: from zero, over the outputs that read the element, rows and columns ascending, each with
  // the product of its weights; one that reads it more than once adds in the order (low row, low
  // column), (low, high), (high, low), (high, high).
  virtual void bilinear_backward(const BilinearShape& shape, const T* dy, T* dx) = 0;

  // The first largest element of each window; a NaN wins. Requires: T is ordered.
  virtual void max_pool2d_forward(const Pool2dShape& shape, const T* x, T* y) = 0;
  // Adds dy at the element that forward chose, in window order; the rest of dx is zero.
  virtual void max_pool2d_backward(const Pool2dShape& shape, const T* x, const T* dy, T* dx) = 0;

  // y = x where x > 0 or x is NaN, else +0. y may be x. Requires: T is ordered.
  virtual void relu_forward(const T* x, T* y, std::int64_t count) = 0;
  // dx = dy where y > 0 or y is NaN, else +0. dx may be dy.
  virtual void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count) = 0;

  // For each row of logits[rows][classes] with 0 <= target < classes: loss[row] = -log softmax of
  // the target, and gradient[row] = softmax - one_hot(target). Rows with a negative target count as
  // ignored: both are zero. Sums run over classes ascending. The targets are in host memory, which
  // may change when this returns. Requires: targets are below classes; T has exp and log.
  virtual void softmax_cross_entropy(std::int64_t rows, std::int64_t classes, const T* logits,
                                     const std::int64_t* targets, T* loss, T* gradient) = 0;

  // One update of w, and of the momentum buffer where the rule has momentum, in place: the formula
  // of reference/optim/sgd.h, each "a + s * b" one fused multiply-add. `buffer` may be null without
  // momentum; with kFirst, what it held is not read.
  virtual void sgd_update(const SgdRule& rule, const SgdFactors<T>& factors, T* w,
                          const T* gradient, T* buffer, std::int64_t count) = 0;
  // One update of w and of Adam's state, in place: the formula of reference/optim/adam.h, each
  // "a + s * b" one fused multiply-add. Requires: T has an order, a quotient and a square root.
  virtual void adam_update(const AdamRule& rule, const AdamFactors<T>& factors, T* w,
                           const T* gradient, const AdamState<T>& state, std::int64_t count) = 0;

  // sums[l] for l < kSumLanes: the chain from zero over the elements l, l + kSumLanes, ... of x.
  virtual void lane_sums(LaneSum kind, const T* x, T* sums, std::int64_t count) = 0;
};

}  // namespace ddproof
