// A CUDA device whose linear and convolution layers are products by cuBLAS: fast, and within the
// rounding bound of dot products instead of bit for bit. Everything else is Cuda<T>'s.
//
// The same call has the same bits on the same device and versions of CUDA; not when a batch is cut
// otherwise. Convolutions unroll their windows into columns, of as many samples at once as fit into
// `column_bytes`, at least one.
// Errors, threads: as Cuda<T>.
#pragma once

#include <cublas_v2.h>

#include "reference/compute/cuda/cuda.h"
#include "reference/compute/cuda/cuda_math.h"

namespace ddproof {

template <class T>
class FastCuda final : public Cuda<T> {
 public:
  // As Cuda<T>. Requires: `math` is not kFixedOrder. TF32 is for float alone.
  FastCuda(int device, CudaMath math, std::int64_t column_bytes = 256 << 20);
  ~FastCuda() override;

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

 private:
  struct Factor {
    const T* data;
    bool transposed = false;
    std::int64_t stride = 0;  // from product to product
  };
  // C[rows][columns] = A[rows][depth] B[depth][columns], row-major, plus what C holds if `adds`;
  // `batches` times. A transposed factor lies in memory the other way round.
  struct Product {
    std::int64_t rows, columns, depth;
    Factor a, b;
    T* c;
    bool adds = false;
    std::int64_t stride = 0;
    std::int64_t batches = 1;
  };
  void multiply(const Product& product);
  void check_cublas(cublasStatus_t status, const char* call) const;
  internal::Scratch scratch(std::int64_t count) const;
  // Calls work(samples from the first of them on, memory for their columns), for parts of a batch.
  template <class Work>
  void in_parts(const Conv2dShape& shape, std::int64_t elements_per_sample, Work work);

  CudaMath math_;
  std::int64_t column_bytes_;
  cublasHandle_t cublas_ = nullptr;
};

extern template class FastCuda<float>;
extern template class FastCuda<double>;

}  // namespace ddproof
