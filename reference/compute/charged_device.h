// A device that declares what its operations cost: in the simulator computing then takes virtual
// time, so that a run shows how much of the communication it hides.
//
// The model: products of matrices and convolutions take their floating-point operations, everything
// else the bytes that it reads and writes, at a constant rate, rounded down to nanoseconds. Never a
// clock, so a run stays what it is. The results are the base device's, bit for bit.
// Threads: as the base device.
#pragma once

#include <cstdint>

#include "backends/api/runtime.h"
#include "reference/compute/device.h"

namespace ddproof {

// Zero: it takes no time.
struct ComputeCost {
  std::int64_t flops_per_second = 0;
  std::int64_t bytes_per_second = 0;
};

template <class T>
class ChargedDevice final : public Device<T> {
 public:
  // Requires: the references outlive this; the rates are not negative.
  ChargedDevice(Device<T>& base, Runtime& runtime, const ComputeCost& cost)
      : base_(base), runtime_(runtime), cost_(cost) {}

  std::string_view name() const override { return base_.name(); }
  void* stream() const override { return base_.stream(); }
  T* allocate(std::int64_t count) override { return base_.allocate(count); }
  void deallocate(T* data) override { base_.deallocate(data); }

  void fill(T* data, std::int64_t count, T value) override {
    base_.fill(data, count, value);
    move(count);
  }
  void copy(T* to, const T* from, std::int64_t count) override {
    base_.copy(to, from, count);
    move(2 * count);
  }
  void scaled_copy(T* to, const T* from, T factor, std::int64_t count) override {
    base_.scaled_copy(to, from, factor, count);
    move(2 * count);
  }
  void axpy(T* to, const T* from, T factor, std::int64_t count) override {
    base_.axpy(to, from, factor, count);
    move(3 * count);
  }
  void copy_to_host(T* host, const T* device, std::int64_t count) override {
    base_.copy_to_host(host, device, count);
    move(2 * count);
  }
  void copy_from_host(T* device, const T* host, std::int64_t count) override {
    base_.copy_from_host(device, host, count);
    move(2 * count);
  }

  void linear_forward(const LinearShape& shape, const T* x, const T* w, const T* bias,
                      T* y) override {
    base_.linear_forward(shape, x, w, bias, y);
    multiply(shape);
  }
  void linear_backward_input(const LinearShape& shape, const T* dy, const T* w, T* dx) override {
    base_.linear_backward_input(shape, dy, w, dx);
    multiply(shape);
  }
  void linear_backward_parameters(const LinearShape& shape, const T* dy, const T* x, T* dw,
                                  T* dbias) override {
    base_.linear_backward_parameters(shape, dy, x, dw, dbias);
    multiply(shape);
  }

  void conv2d_forward(const Conv2dShape& shape, const T* x, const T* w, const T* bias,
                      T* y) override {
    base_.conv2d_forward(shape, x, w, bias, y);
    multiply(shape);
  }
  void conv2d_backward_input(const Conv2dShape& shape, const T* dy, const T* w, T* dx) override {
    base_.conv2d_backward_input(shape, dy, w, dx);
    multiply(shape);
  }
  void conv2d_backward_parameters(const Conv2dShape& shape, const T* dy, const T* x, T* dw,
                                  T* dbias) override {
    base_.conv2d_backward_parameters(shape, dy, x, dw, dbias);
    multiply(shape);
  }

  void batch_norm_statistics(const BatchNormShape& shape, const T* x, T* mean,
                             T* variance) override {
    base_.batch_norm_statistics(shape, x, mean, variance);
    move(2 * shape.count() + 2 * shape.channels);  // read twice
  }
  void inverse_deviations(std::int64_t channels, const T* variance, double eps,
                          T* result) override {
    base_.inverse_deviations(channels, variance, eps, result);
    move(2 * channels);
  }
  void batch_norm_forward(const BatchNormShape& shape, const ChannelStatistics<T>& of, const T* x,
                          const T* w, const T* bias, T* y) override {
    base_.batch_norm_forward(shape, of, x, w, bias, y);
    move(2 * shape.count() + 4 * shape.channels);
  }
  void batch_norm_backward_sums(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                const T* x, const T* dy, T* sum_dy, T* sum_dy_x) override {
    base_.batch_norm_backward_sums(shape, of, x, dy, sum_dy, sum_dy_x);
    move(2 * shape.count() + 4 * shape.channels);
  }
  void batch_norm_backward_input(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                 const T* x, const T* dy, const T* w, const T* mean_dy,
                                 const T* mean_dy_x, T* dx) override {
    base_.batch_norm_backward_input(shape, of, x, dy, w, mean_dy, mean_dy_x, dx);
    move(3 * shape.count() + 5 * shape.channels);
  }

  void transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, const T* from,
                 T* to) override {
    base_.transpose(batch, rows, columns, from, to);
    move(2 * batch * rows * columns);
  }
  void bilinear_forward(const BilinearShape& shape, const T* x, T* y) override {
    base_.bilinear_forward(shape, x, y);
    move(both_images(shape));
  }
  void bilinear_backward(const BilinearShape& shape, const T* dy, T* dx) override {
    base_.bilinear_backward(shape, dy, dx);
    move(both_images(shape));
  }

  void max_pool2d_forward(const Pool2dShape& shape, const T* x, T* y) override {
    base_.max_pool2d_forward(shape, x, y);
    move(shape.planes * (shape.height * shape.width + shape.out_height() * shape.out_width()));
  }
  void max_pool2d_backward(const Pool2dShape& shape, const T* x, const T* dy, T* dx) override {
    base_.max_pool2d_backward(shape, x, dy, dx);
    move(shape.planes * (2 * shape.height * shape.width + shape.out_height() * shape.out_width()));
  }
  void relu_forward(const T* x, T* y, std::int64_t count) override {
    base_.relu_forward(x, y, count);
    move(2 * count);
  }
  void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count) override {
    base_.relu_backward(y, dy, dx, count);
    move(3 * count);
  }
  void softmax_cross_entropy(std::int64_t rows, std::int64_t classes, const T* logits,
                             const std::int64_t* targets, T* loss, T* gradient) override {
    base_.softmax_cross_entropy(rows, classes, logits, targets, loss, gradient);
    move(2 * rows * classes);
  }
  void sgd_update(const SgdRule& rule, const SgdFactors<T>& factors, T* w, const T* gradient,
                  T* buffer, std::int64_t count) override {
    base_.sgd_update(rule, factors, w, gradient, buffer, count);
    move((rule.momentum == SgdRule::Momentum::kNone ? 3 : 5) * count);
  }
  void adam_update(const AdamRule& rule, const AdamFactors<T>& factors, T* w, const T* gradient,
                   const AdamState<T>& state, std::int64_t count) override {
    base_.adam_update(rule, factors, w, gradient, state, count);
    move((rule.amsgrad ? 9 : 7) * count);
  }
  void lane_sums(LaneSum kind, const T* x, T* sums, std::int64_t count) override {
    base_.lane_sums(kind, x, sums, count);
    move(count + kSumLanes);
  }

 private:
  void multiply(const LinearShape& shape) {
    charge(2 * shape.batch * shape.in * shape.out, cost_.flops_per_second);
  }
  void multiply(const Conv2dShape& shape) {
    const std::int64_t outputs =
        shape.batch * shape.out_channels * shape.out_height() * shape.out_width();
    charge(2 * outputs * shape.taps(), cost_.flops_per_second);
  }
  static std::int64_t both_images(const BilinearShape& shape) {
    return shape.planes * (shape.height * shape.width + shape.out_height * shape.out_width);
  }
  void move(std::int64_t elements) {
    charge(elements * static_cast<std::int64_t>(sizeof(T)), cost_.bytes_per_second);
  }
  void charge(std::int64_t amount, std::int64_t per_second) {
    if (per_second == 0) return;
    const auto nanoseconds = static_cast<__int128>(amount) * 1'000'000'000 / per_second;
    if (nanoseconds > 0) runtime_.charge(Duration(static_cast<std::int64_t>(nanoseconds)));
  }

  Device<T>& base_;
  Runtime& runtime_;
  ComputeCost cost_;
};

}  // namespace ddproof
