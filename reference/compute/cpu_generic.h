// The definitions of Cpu<T>'s members, for scalars other than float and double.
//
// A scalar without order or without fixed_exp and fixed_log (found by argument-dependent lookup)
// works in every operation that needs none; the others throw ConfigError.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>

#include "backends/api/error.h"
#include "reference/compute/adam_kernel.h"
#include "reference/compute/cpu.h"
#include "reference/compute/cpu_batch_norm.h"
#include "reference/compute/cpu_bilinear.h"
#include "reference/compute/cpu_conv2d.h"
#include "reference/compute/cpu_elementwise.h"
#include "reference/compute/cpu_linear.h"
#include "reference/compute/kernels_portable.h"
#include "reference/compute/lane_sums.h"
#include "reference/compute/sgd_kernel.h"

namespace ddproof {
namespace internal {

template <class T>
concept Transcendental = Ordered<T> && requires(const T& a) {
  fixed_exp(a);
  fixed_log(a);
  a / a;
};

[[noreturn]] inline void refuse_scalar(const char* operation, const char* need) {
  throw ConfigError(std::string(operation) + " needs a scalar with " + need +
                    ", this model's scalar has none; use float or double, or a layer without it");
}

template <class T>
const Kernels<T>* kernels_for(Isa isa) {
#ifdef DDPROOF_X86_KERNELS
  if constexpr (std::same_as<T, float>) {
    if (isa == Isa::kAvx2) return &avx2_kernels_float();
    if (isa == Isa::kAvx512) return &avx512_kernels_float();
  } else if constexpr (std::same_as<T, double>) {
    if (isa == Isa::kAvx2) return &avx2_kernels_double();
    if (isa == Isa::kAvx512) return &avx512_kernels_double();
  }
#endif
  if (isa == Isa::kPortable) return &kKernels<PortableVector<T>>;
  throw ConfigError("instruction set " + std::string(to_string(isa)) +
                    " has no kernels for this scalar; use portable");
}

}  // namespace internal

template <class T>
Cpu<T>::Cpu(Isa isa) : isa_(isa), kernels_(nullptr) {
  const std::vector<Isa> supported = supported_isas();
  if (std::find(supported.begin(), supported.end(), isa) == supported.end()) {
    std::string allowed;
    for (Isa each : supported) allowed += " " + std::string(to_string(each));
    throw ConfigError("instruction set " + std::string(to_string(isa)) +
                      " cannot run here; this processor and build have:" + allowed);
  }
  kernels_ = internal::kernels_for<T>(isa);
}

template <class T>
T* Cpu<T>::allocate(std::int64_t count) {
  return internal::allocate_aligned<T>(count);
}

template <class T>
void Cpu<T>::deallocate(T* data) {
  internal::release_aligned(data);
}

template <class T>
void Cpu<T>::fill(T* data, std::int64_t count, T value) {
  std::fill_n(data, count, value);
}

template <class T>
void Cpu<T>::copy(T* to, const T* from, std::int64_t count) {
  std::copy_n(from, count, to);
}

template <class T>
void Cpu<T>::scaled_copy(T* to, const T* from, T factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * factor;
}

template <class T>
void Cpu<T>::axpy(T* to, const T* from, T factor, std::int64_t count) {
  kernels_->axpy(to, from, factor, count);
}

template <class T>
void Cpu<T>::copy_to_host(T* host, const T* device, std::int64_t count) {
  std::copy_n(device, count, host);
}

template <class T>
void Cpu<T>::copy_from_host(T* device, const T* host, std::int64_t count) {
  std::copy_n(host, count, device);
}

template <class T>
void Cpu<T>::linear_forward(const LinearShape& shape, const T* x, const T* w, const T* bias, T* y) {
  internal::linear_forward(*kernels_, work_, shape, x, w, bias, y);
}

template <class T>
void Cpu<T>::linear_backward_input(const LinearShape& shape, const T* dy, const T* w, T* dx) {
  internal::linear_backward_input(*kernels_, work_, shape, dy, w, dx);
}

template <class T>
void Cpu<T>::linear_backward_parameters(const LinearShape& shape, const T* dy, const T* x, T* dw,
                                        T* dbias) {
  internal::linear_backward_parameters(*kernels_, work_, shape, dy, x, dw, dbias);
}

template <class T>
void Cpu<T>::conv2d_forward(const Conv2dShape& shape, const T* x, const T* w, const T* bias, T* y) {
  internal::conv2d_forward(*kernels_, work_, shape, x, w, bias, y);
}

template <class T>
void Cpu<T>::conv2d_backward_input(const Conv2dShape& shape, const T* dy, const T* w, T* dx) {
  internal::conv2d_backward_input(*kernels_, work_, shape, dy, w, dx);
}

template <class T>
void Cpu<T>::conv2d_backward_parameters(const Conv2dShape& shape, const T* dy, const T* x, T* dw,
                                        T* dbias) {
  internal::conv2d_backward_parameters(*kernels_, work_, shape, dy, x, dw, dbias);
}

template <class T>
void Cpu<T>::batch_norm_statistics(const BatchNormShape& shape, const T* x, T* mean, T* variance) {
  if constexpr (std::floating_point<T>) {
    internal::batch_norm_statistics(shape, x, mean, variance);
  } else {
    internal::refuse_scalar("batch_norm", "a square root");
  }
}

template <class T>
void Cpu<T>::inverse_deviations(std::int64_t channels, const T* variance, double eps, T* result) {
  if constexpr (std::floating_point<T>) {
    for (std::int64_t c = 0; c < channels; ++c) {
      result[c] = internal::inverse_deviation(variance[c], eps);
    }
  } else {
    internal::refuse_scalar("batch_norm", "a square root");
  }
}

template <class T>
void Cpu<T>::batch_norm_forward(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                const T* x, const T* w, const T* bias, T* y) {
  if constexpr (std::floating_point<T>) {
    internal::batch_norm_forward(shape, of, x, w, bias, y);
  } else {
    internal::refuse_scalar("batch_norm", "a square root");
  }
}

template <class T>
void Cpu<T>::batch_norm_backward_sums(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                      const T* x, const T* dy, T* sum_dy, T* sum_dy_x) {
  if constexpr (std::floating_point<T>) {
    internal::batch_norm_backward_sums(shape, of, x, dy, sum_dy, sum_dy_x);
  } else {
    internal::refuse_scalar("batch_norm", "a square root");
  }
}

template <class T>
void Cpu<T>::batch_norm_backward_input(const BatchNormShape& shape, const ChannelStatistics<T>& of,
                                       const T* x, const T* dy, const T* w, const T* mean_dy,
                                       const T* mean_dy_x, T* dx) {
  if constexpr (std::floating_point<T>) {
    internal::batch_norm_backward_input(shape, of, x, dy, w, mean_dy, mean_dy_x, dx);
  } else {
    internal::refuse_scalar("batch_norm", "a square root");
  }
}

template <class T>
void Cpu<T>::transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, const T* from,
                       T* to) {
  for (std::int64_t n = 0; n < batch; ++n, from += rows * columns) {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < rows; ++r) *to++ = from[r * columns + c];
    }
  }
}

template <class T>
void Cpu<T>::bilinear_forward(const BilinearShape& shape, const T* x, T* y) {
  if constexpr (std::floating_point<T>) {
    internal::bilinear_forward(shape, x, y);
  } else {
    internal::refuse_scalar("bilinear interpolation", "fractions");
  }
}

template <class T>
void Cpu<T>::bilinear_backward(const BilinearShape& shape, const T* dy, T* dx) {
  if constexpr (std::floating_point<T>) {
    internal::bilinear_backward(shape, dy, dx);
  } else {
    internal::refuse_scalar("bilinear interpolation", "fractions");
  }
}

template <class T>
void Cpu<T>::max_pool2d_forward(const Pool2dShape& shape, const T* x, T* y) {
  if constexpr (internal::Ordered<T>) {
    internal::max_pool2d_forward(*kernels_, shape, x, y);
  } else {
    internal::refuse_scalar("max_pool2d", "an order");
  }
}

template <class T>
void Cpu<T>::max_pool2d_backward(const Pool2dShape& shape, const T* x, const T* dy, T* dx) {
  if constexpr (internal::Ordered<T>) {
    internal::max_pool2d_backward(*kernels_, shape, x, dy, dx);
  } else {
    internal::refuse_scalar("max_pool2d", "an order");
  }
}

template <class T>
void Cpu<T>::relu_forward(const T* x, T* y, std::int64_t count) {
  if constexpr (internal::Ordered<T>) {
    internal::relu_forward(x, y, count);
  } else {
    internal::refuse_scalar("relu", "an order");
  }
}

template <class T>
void Cpu<T>::relu_backward(const T* y, const T* dy, T* dx, std::int64_t count) {
  if constexpr (internal::Ordered<T>) {
    internal::relu_backward(y, dy, dx, count);
  } else {
    internal::refuse_scalar("relu", "an order");
  }
}

template <class T>
void Cpu<T>::softmax_cross_entropy(std::int64_t rows, std::int64_t classes, const T* logits,
                                   const std::int64_t* targets, T* loss, T* gradient) {
  if constexpr (internal::Transcendental<T>) {
    internal::softmax_cross_entropy(rows, classes, logits, targets, loss, gradient);
  } else {
    internal::refuse_scalar("softmax_cross_entropy", "an order, exp and log");
  }
}

template <class T>
void Cpu<T>::sgd_update(const SgdRule& rule, const SgdFactors<T>& factors, T* w, const T* gradient,
                        T* buffer, std::int64_t count) {
  ddproof::sgd_update(rule, factors, w, gradient, buffer, count);
}

template <class T>
void Cpu<T>::adam_update(const AdamRule& rule, const AdamFactors<T>& factors, T* w,
                         const T* gradient, const AdamState<T>& state, std::int64_t count) {
  if constexpr (internal::HasSquareRoot<T>) {
    ddproof::adam_update(rule, factors, w, gradient, state, count);
  } else {
    internal::refuse_scalar("adam_update", "an order, a quotient and a square root");
  }
}

template <class T>
void Cpu<T>::lane_sums(LaneSum kind, const T* x, T* sums, std::int64_t count) {
  ddproof::lane_sums(kind, x, sums, count);
}

}  // namespace ddproof
