// One CUDA device: operations are queued in a stream of its own, in order, and nothing but
// copy_to_host() waits for them.
//
// Every element of a result is one chain of fused multiply-adds, which one thread of the device
// computes in the order that device.h states; so results have the bits of Cpu<T>. Only the payload
// of a NaN may differ.
// Errors: ResourceError, naming the device, the call and what CUDA said. What goes wrong while an
// operation runs is told by a later one, and the device is then lost to the process.
// Threads: one task at a time. Each operation leaves this device the calling thread's.
//
// cuda_definitions.h is compiled twice: by nvcc (cuda.cu), for the module that is loaded where
// there is a device; and by the host compiler (cuda.cc), as host twins on the CPU stand-in.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "reference/compute/batch_norm.h"
#include "reference/compute/cuda/cuda_memory.h"
#include "reference/compute/device.h"

namespace ddproof {

// T: float or double.
template <class T>
class Cuda : public Device<T> {
 public:
  // Throws ResourceError when there is no such device, no driver, or no memory for a stream.
  explicit Cuda(int device);
  // Requires: what was allocated is given back.
  ~Cuda() override;
  Cuda(const Cuda&) = delete;
  Cuda& operator=(const Cuda&) = delete;

  std::string_view name() const override { return "cuda"; }
  // A cudaStream_t.
  void* stream() const override { return stream_; }
  int device() const { return device_; }

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

 protected:
  // Makes it the calling thread's device.
  void use() const;
  // Launches the kernel for 0 to count - 1.
  template <class Kernel>
  void for_each(std::int64_t count, const Kernel& kernel);

 private:
  void check(cudaError_t result, const std::string& call) const {
    internal::check_cuda(result, device_, call);
  }
  template <class Layer>
  void multiply(const Layer& layer);
  template <class Term>
  void sum_planes(const BatchNormShape& shape, const Term& term, internal::Wide<T>* sums);
  template <SgdRule::Momentum kMomentum>
  void update(const SgdRule& rule, const SgdFactors<T>& factors, T* w, const T* gradient, T* buffer,
              std::int64_t count);

  int device_;
  internal::PinnedStaging staging_;
  cudaStream_t stream_ = nullptr;
};

extern template class Cuda<float>;
extern template class Cuda<double>;

}  // namespace ddproof
