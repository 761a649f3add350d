// The definitions of FastCuda<T>'s members: for nvcc and for host compilers.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include "backends/api/check.h"
#include "reference/compute/cuda/cuda_definitions.h"
#include "reference/compute/cuda/fast_cuda.h"
#include "reference/compute/cuda/fast_kernels.h"

namespace ddproof {

template <class T>
FastCuda<T>::FastCuda(int device, CudaMath math, std::int64_t column_bytes)
    : Cuda<T>(device), math_(math), column_bytes_(column_bytes) {
  DDPROOF_CHECK(math != CudaMath::kFixedOrder);
  check_cublas(cublasCreate(&cublas_), "cublasCreate");
  const cublasStatus_t status = cublasSetStream(cublas_, static_cast<cudaStream_t>(this->stream()));
  if (status != CUBLAS_STATUS_SUCCESS) (void)cublasDestroy(cublas_);
  check_cublas(status, "cublasSetStream");
}

template <class T>
FastCuda<T>::~FastCuda() {
  (void)cublasDestroy(cublas_);
}

template <class T>
void FastCuda<T>::check_cublas(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  (void)cudaGetLastError();  // so that no later call reports this one again
  throw ResourceError("CUDA device " + std::to_string(this->device()) + ": " + call + ": " +
                      cublasGetStatusString(status));
}

// cuBLAS is column-major: it is asked for the transpose of C, which is B^T A^T.
template <class T>
void FastCuda<T>::multiply(const Product& p) {
  if (p.rows == 0 || p.columns == 0 || p.batches == 0) return;
  internal::check_sizes("a product by cuBLAS", p.rows, p.columns, p.depth);
  this->use();
  constexpr bool kFloat = std::is_same_v<T, float>;
  constexpr cudaDataType kType = kFloat ? CUDA_R_32F : CUDA_R_64F;
  const cublasComputeType_t compute = !kFloat                        ? CUBLAS_COMPUTE_64F
                                      : math_ == CudaMath::kFastTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                     : CUBLAS_COMPUTE_32F;
  const auto operation = [](const Factor& f) { return f.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto leading = [](const Factor& f, std::int64_t rows, std::int64_t columns) {
    return static_cast<int>(std::max<std::int64_t>(1, f.transposed ? rows : columns));
  };
  const T one(1), beta(p.adds ? 1 : 0);
  check_cublas(
      cublasGemmStridedBatchedEx(
          cublas_, operation(p.b), operation(p.a), static_cast<int>(p.columns),
          static_cast<int>(p.rows), static_cast<int>(p.depth), &one, p.b.data, kType,
          leading(p.b, p.depth, p.columns), p.b.stride, p.a.data, kType,
          leading(p.a, p.rows, p.depth), p.a.stride, &beta, p.c, kType, static_cast<int>(p.columns),
          p.stride, static_cast<int>(p.batches), compute, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx");
}

template <class T>
void FastCuda<T>::linear_forward(const LinearShape& s, const T* x, const T* w, const T* bias,
                                 T* y) {
  const std::int64_t count = s.batch * s.out;
  this->for_each(count, internal::SpreadBias<T>{bias, y, s.out, 1, count});
  multiply({.rows = s.batch,
            .columns = s.out,
            .depth = s.in,
            .a = {x},
            .b = {w, true},
            .c = y,
            .adds = true});
}

template <class T>
void FastCuda<T>::linear_backward_input(const LinearShape& s, const T* dy, const T* w, T* dx) {
  multiply({.rows = s.batch, .columns = s.in, .depth = s.out, .a = {dy}, .b = {w}, .c = dx});
}

template <class T>
void FastCuda<T>::linear_backward_parameters(const LinearShape& s, const T* dy, const T* x, T* dw,
                                             T* dbias) {
  if (s.batch == 0) return;
  this->for_each(s.out, internal::AddColumnSums<T>{dy, dbias, s.batch, s.out});
  multiply({.rows = s.out,
            .columns = s.in,
            .depth = s.batch,
            .a = {dy, true},
            .b = {x},
            .c = dw,
            .adds = true});
}

template <class T>
internal::Scratch FastCuda<T>::scratch(std::int64_t count) const {
  this->use();
  return {static_cast<cudaStream_t>(this->stream()), internal::bytes_of<T>(count), this->device()};
}

template <class T>
template <class Work>
void FastCuda<T>::in_parts(const Conv2dShape& shape, std::int64_t elements_per_sample, Work work) {
  const std::int64_t bytes = elements_per_sample * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t most = std::max<std::int64_t>(1, column_bytes_ / bytes);
  for (std::int64_t first = 0; first < shape.batch; first += most) {
    Conv2dShape part = shape;
    part.batch = std::min(most, shape.batch - first);
    const internal::Scratch columns = scratch(part.batch * elements_per_sample);
    work(part, first, static_cast<T*>(columns.data()));
  }
}

template <class T>
void FastCuda<T>::conv2d_forward(const Conv2dShape& s, const T* x, const T* w, const T* bias,
                                 T* y) {
  const internal::ConvIndex at(s);
  const std::int64_t positions = at.positions(), outputs = s.out_channels * positions;
  const std::int64_t inputs = s.in_channels * s.height * s.width;
  if (bias != nullptr) {
    this->for_each(s.batch * outputs,
                   internal::SpreadBias<T>{bias, y, s.out_channels, positions, s.batch * outputs});
  }
  in_parts(s, s.taps() * positions, [&](const Conv2dShape& part, std::int64_t first, T* columns) {
    const internal::Unroll<T> unroll{part, at, x + first * inputs, columns, s.taps()};
    this->for_each(unroll.count(), unroll);
    multiply({.rows = s.out_channels,
              .columns = positions,
              .depth = s.taps(),
              .a = {w},
              .b = {columns, false, s.taps() * positions},
              .c = y + first * outputs,
              .adds = bias != nullptr,
              .stride = outputs,
              .batches = part.batch});
  });
}

template <class T>
void FastCuda<T>::conv2d_backward_input(const Conv2dShape& s, const T* dy, const T* w, T* dx) {
  const internal::ConvIndex at(s);
  const std::int64_t positions = at.positions(), outputs = s.out_channels * positions;
  const std::int64_t inputs = s.in_channels * s.height * s.width;
  in_parts(s, s.taps() * positions, [&](const Conv2dShape& part, std::int64_t first, T* columns) {
    multiply({.rows = s.taps(),
              .columns = positions,
              .depth = s.out_channels,
              .a = {w, true},
              .b = {dy + first * outputs, false, outputs},
              .c = columns,
              .stride = s.taps() * positions,
              .batches = part.batch});
    const internal::Fold<T> fold{part, at, columns, dx + first * inputs};
    this->for_each(fold.count(), fold);
  });
}

// The bias is one more tap, which always sees a 1.
template <class T>
void FastCuda<T>::conv2d_backward_parameters(const Conv2dShape& s, const T* dy, const T* x, T* dw,
                                             T* dbias) {
  const internal::ConvIndex at(s);
  const std::int64_t positions = at.positions(), outputs = s.out_channels * positions;
  const std::int64_t inputs = s.in_channels * s.height * s.width;
  const std::int64_t rows = s.taps() + (dbias != nullptr);
  in_parts(s, rows * positions, [&](const Conv2dShape& part, std::int64_t first, T* columns) {
    const internal::Scratch scratch_parts = scratch(part.batch * s.out_channels * rows);
    auto* const parts = static_cast<T*>(scratch_parts.data());
    const internal::Unroll<T> unroll{part, at, x + first * inputs, columns, rows};
    this->for_each(unroll.count(), unroll);
    multiply({.rows = s.out_channels,
              .columns = rows,
              .depth = positions,
              .a = {dy + first * outputs, false, outputs},
              .b = {columns, true, rows * positions},
              .c = parts,
              .stride = s.out_channels * rows,
              .batches = part.batch});
    const internal::AddParts<T> add{part.batch, s.out_channels, s.taps(), parts, dw, dbias};
    this->for_each(add.count(), add);
  });
}

}  // namespace ddproof
