// The definitions of Cuda<T>'s members: for nvcc and for host compilers.
#pragma once

#include <limits>
#include <string>

#include "backends/api/error.h"
#include "reference/compute/cuda/batch_norm_kernels.h"
#include "reference/compute/cuda/cuda.h"
#include "reference/compute/cuda/element_kernels.h"
#include "reference/compute/cuda/image_kernels.h"
#include "reference/compute/cuda/launch.h"
#include "reference/compute/cuda/layers.h"
#include "reference/compute/cuda/product_kernel.h"

namespace ddproof {
namespace internal {

template <class T>
std::size_t bytes_of(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(T);
}

// Places are counted in 32 bits on the device. Throws ConfigError.
inline void check_sizes(const std::string& what, std::int64_t rows, std::int64_t columns,
                        std::int64_t depth) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (rows <= kMost && columns <= kMost && depth <= kMost) return;
  throw ConfigError(what + " of " + std::to_string(rows) + " x " + std::to_string(columns) + " x " +
                    std::to_string(depth) +
                    ": a CUDA device takes at most 2^31 - 1; take a smaller batch");
}

}  // namespace internal

template <class T>
Cuda<T>::Cuda(int device) : device_(device), staging_(device) {
  use();
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  // What is freed stays with the process, so that allocating again costs nothing.
  cudaMemPool_t pool = nullptr;
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  cudaError_t result = cudaDeviceGetDefaultMemPool(&pool, device);
  if (result == cudaSuccess) {
    result = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
  }
  if (result != cudaSuccess) (void)cudaStreamDestroy(stream_);
  check(result, "its memory pool");
}

template <class T>
Cuda<T>::~Cuda() {
  (void)cudaSetDevice(device_);
  (void)cudaStreamDestroy(stream_);
}

template <class T>
void Cuda<T>::use() const {
  check(cudaSetDevice(device_), "cudaSetDevice");
}

template <class T>
T* Cuda<T>::allocate(std::int64_t count) {
  const std::size_t bytes = internal::bytes_of<T>(count);
  use();
  auto* const data = static_cast<T*>(internal::allocate_in(stream_, bytes, device_));
  if (data == nullptr) return nullptr;
  const cudaError_t result = cudaMemsetAsync(data, 0, bytes, stream_);
  if (result != cudaSuccess) deallocate(data);
  check(result, "cudaMemsetAsync");
  return data;
}

// In the stream's order, so after what uses it. Called by destructors: a device that is lost has
// told so before.
template <class T>
void Cuda<T>::deallocate(T* data) {
  if (data != nullptr) (void)cudaFreeAsync(data, stream_);
}

template <class T>
template <class Kernel>
void Cuda<T>::for_each(std::int64_t count, const Kernel& kernel) {
  use();
  check(internal::launch_each(kernel, count, stream_), Kernel::kName);
}

template <class T>
void Cuda<T>::fill(T* data, std::int64_t count, T value) {
  for_each(count, internal::Fill<T>{data, count, value});
}

template <class T>
void Cuda<T>::copy(T* to, const T* from, std::int64_t count) {
  use();
  if (count == 0) return;
  check(cudaMemcpyAsync(to, from, internal::bytes_of<T>(count), cudaMemcpyDeviceToDevice, stream_),
        "cudaMemcpyAsync");
}

template <class T>
void Cuda<T>::scaled_copy(T* to, const T* from, T factor, std::int64_t count) {
  for_each(count, internal::ScaledCopy<T>{to, from, factor, count});
}

template <class T>
void Cuda<T>::axpy(T* to, const T* from, T factor, std::int64_t count) {
  for_each(count, internal::Axpy<T>{to, from, factor, count});
}

template <class T>
void Cuda<T>::copy_to_host(T* host, const T* device, std::int64_t count) {
  use();
  if (count > 0) {
    check(cudaMemcpyAsync(host, device, internal::bytes_of<T>(count), cudaMemcpyDeviceToHost,
                          stream_),
          "cudaMemcpyAsync");
  }
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

template <class T>
void Cuda<T>::copy_from_host(T* device, const T* host, std::int64_t count) {
  use();
  staging_.send(device, host, internal::bytes_of<T>(count), stream_);
}

template <class T>
template <class Layer>
void Cuda<T>::multiply(const Layer& layer) {
  internal::check_sizes(Layer::kName, layer.rows(), layer.columns(), layer.depth());
  const internal::ProductKernel<Layer> kernel{layer};
  use();
  check(internal::launch_blocks(kernel, kernel.blocks(), stream_), Layer::kName);
}

template <class T>
void Cuda<T>::linear_forward(const LinearShape& s, const T* x, const T* w, const T* bias, T* y) {
  multiply(internal::LinearForward<T>{s, x, w, bias, y});
}

template <class T>
void Cuda<T>::linear_backward_input(const LinearShape& s, const T* dy, const T* w, T* dx) {
  multiply(internal::LinearBackwardInput<T>{s, dy, w, dx});
}

template <class T>
void Cuda<T>::linear_backward_parameters(const LinearShape& s, const T* dy, const T* x, T* dw,
                                         T* dbias) {
  multiply(internal::LinearBackwardParameters<T>{s, dy, x, dw, dbias});
}

template <class T>
void Cuda<T>::conv2d_forward(const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  multiply(internal::ConvForward<T>{s, internal::ConvIndex(s), x, w, bias, y});
}

template <class T>
void Cuda<T>::conv2d_backward_input(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  multiply(internal::ConvBackwardInput<T>{s, internal::ConvIndex(s), dy, w, dx});
}

template <class T>
void Cuda<T>::conv2d_backward_parameters(const Conv2dShape& s, const T* dy, const T* x, T* dw,
                                         T* dbias) {
  multiply(internal::ConvBackwardParameters<T>{s, internal::ConvIndex(s), dy, x, dw, dbias});
}

template <class T>
template <class Term>
void Cuda<T>::sum_planes(const BatchNormShape& s, const Term& term, internal::Wide<T>* sums) {
  for_each(s.planes(), internal::SumPlanes<T, Term>{s, term, sums});
}

template <class T>
void Cuda<T>::batch_norm_statistics(const BatchNormShape& s, const T* x, T* mean, T* variance) {
  using Sum = internal::Wide<T>;
  use();
  const internal::Scratch scratch(stream_, internal::bytes_of<Sum>(s.planes() + s.channels),
                                  device_);
  auto* const sums = static_cast<Sum*>(scratch.data());
  Sum* const means = sums + s.planes();
  sum_planes(s, internal::PlaneSum<T>{x}, sums);
  for_each(s.channels, internal::SumChannels<T>{s, sums, true, mean, means});
  sum_planes(s, internal::PlaneSquares<T>{x, means}, sums);
  for_each(s.channels, internal::SumChannels<T>{s, sums, true, variance, nullptr});
}

template <class T>
void Cuda<T>::inverse_deviations(std::int64_t channels, const T* variance, double eps, T* result) {
  for_each(channels, internal::InverseDeviations<T>{channels, variance, eps, result});
}

template <class T>
void Cuda<T>::batch_norm_forward(const BatchNormShape& s, const ChannelStatistics<T>& of,
                                 const T* x, const T* w, const T* bias, T* y) {
  for_each(s.count(), internal::BatchNormForward<T>{s, of, x, w, bias, y});
}

template <class T>
void Cuda<T>::batch_norm_backward_sums(const BatchNormShape& s, const ChannelStatistics<T>& of,
                                       const T* x, const T* dy, T* sum_dy, T* sum_dy_x) {
  using Sum = internal::Wide<T>;
  use();
  const internal::Scratch scratch(stream_, internal::bytes_of<Sum>(s.planes()), device_);
  auto* const sums = static_cast<Sum*>(scratch.data());
  sum_planes(s, internal::PlaneSum<T>{dy}, sums);
  for_each(s.channels, internal::SumChannels<T>{s, sums, false, sum_dy, nullptr});
  sum_planes(s, internal::PlaneProducts<T>{x, dy, of.mean, of.inverse_deviation}, sums);
  for_each(s.channels, internal::SumChannels<T>{s, sums, false, sum_dy_x, nullptr});
}

template <class T>
void Cuda<T>::batch_norm_backward_input(const BatchNormShape& s, const ChannelStatistics<T>& of,
                                        const T* x, const T* dy, const T* w, const T* mean_dy,
                                        const T* mean_dy_x, T* dx) {
  for_each(s.count(), internal::BatchNormBackwardInput<T>{s, of, x, dy, w, mean_dy, mean_dy_x, dx});
}

template <class T>
void Cuda<T>::transpose(std::int64_t batch, std::int64_t rows, std::int64_t columns, const T* from,
                        T* to) {
  const internal::Transpose<T> kernel{batch, rows, columns, from, to};
  for_each(kernel.count(), kernel);
}

template <class T>
void Cuda<T>::bilinear_forward(const BilinearShape& s, const T* x, T* y) {
  const internal::BilinearForward<T> kernel{s, x, y};
  for_each(kernel.count(), kernel);
}

template <class T>
void Cuda<T>::bilinear_backward(const BilinearShape& s, const T* dy, T* dx) {
  const internal::BilinearBackward<T> kernel{s, dy, dx};
  for_each(kernel.count(), kernel);
}

template <class T>
void Cuda<T>::max_pool2d_forward(const Pool2dShape& s, const T* x, T* y) {
  const internal::MaxPoolForward<T> kernel{s, x, y};
  for_each(kernel.count(), kernel);
}

template <class T>
void Cuda<T>::max_pool2d_backward(const Pool2dShape& s, const T* x, const T* dy, T* dx) {
  const internal::MaxPoolBackward<T> kernel{s, x, dy, dx};
  for_each(kernel.count(), kernel);
}

template <class T>
void Cuda<T>::relu_forward(const T* x, T* y, std::int64_t count) {
  for_each(count, internal::ReluForward<T>{x, y, count});
}

template <class T>
void Cuda<T>::relu_backward(const T* y, const T* dy, T* dx, std::int64_t count) {
  for_each(count, internal::ReluBackward<T>{y, dy, dx, count});
}

template <class T>
void Cuda<T>::softmax_cross_entropy(std::int64_t rows, std::int64_t classes, const T* logits,
                                    const std::int64_t* targets, T* loss, T* gradient) {
  use();
  const std::size_t bytes = internal::bytes_of<std::int64_t>(rows);
  const internal::Scratch scratch(stream_, bytes, device_);
  auto* const there = static_cast<std::int64_t*>(scratch.data());
  staging_.send(there, targets, bytes, stream_);
  for_each(rows,
           internal::SoftmaxCrossEntropyRows<T>{rows, classes, logits, there, loss, gradient});
}

template <class T>
template <SgdRule::Momentum kMomentum>
void Cuda<T>::update(const SgdRule& rule, const SgdFactors<T>& factors, T* w, const T* gradient,
                     T* buffer, std::int64_t count) {
  for_each(count, internal::SgdUpdate<T, kMomentum>{rule, factors, w, gradient, buffer, count});
}

template <class T>
void Cuda<T>::sgd_update(const SgdRule& rule, const SgdFactors<T>& factors, T* w, const T* gradient,
                         T* buffer, std::int64_t count) {
  switch (rule.momentum) {
    case SgdRule::Momentum::kNone:
      return update<SgdRule::Momentum::kNone>(rule, factors, w, gradient, buffer, count);
    case SgdRule::Momentum::kFirst:
      return update<SgdRule::Momentum::kFirst>(rule, factors, w, gradient, buffer, count);
    case SgdRule::Momentum::kRunning:
      return update<SgdRule::Momentum::kRunning>(rule, factors, w, gradient, buffer, count);
  }
}

template <class T>
void Cuda<T>::adam_update(const AdamRule& rule, const AdamFactors<T>& factors, T* w,
                          const T* gradient, const AdamState<T>& state, std::int64_t count) {
  if (rule.amsgrad) {
    for_each(count, internal::AdamUpdate<T, true>{rule.decay, factors, w, gradient, state, count});
  } else {
    for_each(count, internal::AdamUpdate<T, false>{rule.decay, factors, w, gradient, state, count});
  }
}

template <class T>
void Cuda<T>::lane_sums(LaneSum kind, const T* x, T* sums, std::int64_t count) {
  if (kind == LaneSum::kSquares) {
    for_each(kSumLanes, internal::LaneSums<T, LaneSum::kSquares>{x, sums, count});
  } else {
    for_each(kSumLanes, internal::LaneSums<T, LaneSum::kZeros>{x, sums, count});
  }
}

}  // namespace ddproof
