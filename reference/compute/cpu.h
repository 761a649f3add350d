// The CPU: single-threaded fixed-order kernels over any scalar.
//
// float and double use the vector kernels of the instruction set given at construction; another
// scalar uses the portable ones and must include cpu_generic.h where it is instantiated. All give
// the same bits.
// Uses less than 16 KiB of stack. One task at a time.
#pragma once

#include <concepts>

#include "reference/compute/aligned_memory.h"
#include "reference/compute/device.h"
#include "reference/compute/isa.h"
#include "reference/compute/kernels.h"

namespace ddproof {

template <class T>
class Cpu final : public Device<T> {
 public:
  // Throws ConfigError when this processor or build lacks `isa`, or T has no kernels for it.
  explicit Cpu(Isa isa = std::floating_point<T> ? best_isa() : Isa::kPortable);

  Isa isa() const { return isa_; }

  std::string_view name() const override { return "cpu"; }
  T* allocate(std::int64_t count) override;
  void deallocate(T* data) override;
  void fill(T* data, std::int64_t count, T value) override;
  void copy(T* to, const T* from, std::int64_t count) override;
  void scaled_copy(T* to, const T* from, T factor, std::int64_t count) override;
  void axpy(T* to, const T* from, T factor, std::int64_t count) override;
  void copy_to_host(T* host, const T* device, std::int64_t count) override;
  void copy_from_host(T* device, const T* host, std::int64_t count) override;

  void linear_forward(const LinearShape& shape, const T* x, const T* w, const T* bias,
                      T* y) override;
  void linear_backward_input(const LinearShape& shape, const T* dy, const T* w, T* dx) override;
  void linear_backward_parameters(const LinearShape& shape, const T* dy, const T* x, T* dw,
                                  T* dbias) override;

  void conv2d_forward(const Conv2dShape& shape, const T* x, const T* w, const T* bias,
                      T* y) override;
  void conv2d_backward_input(const Conv2dShape& shape, const T* dy, const T* w, T* dx) override;
  void conv2d_backward_parameters(const Conv2dShape& shape, const T* dy, const T* x, T* dw,
                                  T* dbias) override;

  void batch_norm_statistics(const BatchNormShape& shape, const T* x, T* mean,
                             T* variance) override;
  void inverse_deviations(std::int64_t channels, const T* variance, double eps, T* result) override;
  void batch_norm_forward(const BatchNormShape& shape, const ChannelStatistics<T>& of, const T* x,
                          const T* w, const T* bias, T* y) override;
  void batch_norm_backward_sums(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                const T* x, const T* dy, T* sum_dy, T* sum_dy_x) override;
  void batch_norm_backward_input(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                 const T* x, const T* dy, const T* w, const T* mean_dy,
                                 const T* mean_dy_x, T* dx) override;

  void transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, const T* from,
                 T* to) override;
  void bilinear_forward(const BilinearShape& shape, const T* x, T* y) override;
  void bilinear_backward(const BilinearShape& shape, const T* dy, T* dx) override;
  void max_pool2d_forward(const Pool2dShape& shape, const T* x, T* y) override;
  void max_pool2d_backward(const Pool2dShape& shape, const T* x, const T* dy, T* dx) override;
  void relu_forward(const T* x, T* y, std::int64_t count) override;
  void relu_backward(const T* y, const T* dy, T* dx, std::int64_t count) override;
  void softmax_cross_entropy(std::int64_t rows, std::int64_t classes, const T* logits,
                             const std::int64_t* targets, T* loss, T* gradient) override;
  void sgd_update(const SgdRule& rule, const SgdFactors<T>& factors, T* w, const T* gradient,
                  T* buffer, std::int64_t count) override;
  void adam_update(const AdamRule& rule, const AdamFactors<T>& factors, T* w, const T* gradient,
                   const AdamState<T>& state, std::int64_t count) override;
  void lane_sums(LaneSum kind, const T* x, T* sums, std::int64_t count) override;

 private:
  Isa isa_;
  const Kernels<T>* kernels_;
  internal::Workspace<T> work_;
};

extern template class Cpu<float>;
extern template class Cpu<double>;

}  // namespace ddproof
