// The part of cuBLAS's C API that reference/compute/cuda uses: products, as host twins.
//
// It adds in an order of its own, without fused multiply-adds, as the real one may: who relies on
// bits is found out. TF32 rounds the factors, which the real one does in its tensor cores.
// A handle lies in a block of pinned memory, so that its life is checked as memory's is.
#include <cublas_v2.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/nccl/standin/cuda_call.h"
#include "backends/nccl/standin/host_twin.h"
#include "backends/nccl/standin/machine.h"

struct cublasContext {
  cudaStream_t stream;
};

namespace ddproof::standin {
namespace {

cublasStatus_t status_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return CUBLAS_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation: return CUBLAS_STATUS_ALLOC_FAILED;
    case cudaErrorInvalidValue: return CUBLAS_STATUS_INVALID_VALUE;
    case cudaErrorInsufficientDriver: return CUBLAS_STATUS_NOT_INITIALIZED;
    default: return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

bool is_stale_handle(Machine& machine, const char* call, cublasHandle_t handle) {
  const Memory::Block* block = machine.memory().find(handle);
  if (block != nullptr && !block->freed) return false;
  machine.complain(call, block == nullptr ? "the handle is none" : "the handle was destroyed");
  return true;
}

// One of the factors: column-major, as it lies in memory.
template <class T>
struct Matrix {
  const T* data;
  std::int64_t leading;
  std::int64_t stride;
  bool transposed;
  T at(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return data[batch * stride + (transposed ? row * leading + column : column * leading + row)];
  }
};

// To 10 bits of fraction, ties to even.
double to_tf32(double x) { return x; }
float to_tf32(float x) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  bits += 0xfff + ((bits >> 13) & 1);
  return std::bit_cast<float>(bits & ~0x1fffu);
}

struct Sizes {
  std::int64_t m, n, k, batches;
};

// C = alpha A B + beta C, k descending, even and odd terms apart.
template <class T>
void multiply(const Sizes& s, bool tf32, T alpha, const Matrix<T>& a, const Matrix<T>& b, T beta,
              T* c, std::int64_t leading, std::int64_t stride) {
  for (std::int64_t batch = 0; batch < s.batches; ++batch) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      for (std::int64_t i = 0; i < s.m; ++i) {
        T sums[2] = {};
        for (std::int64_t k = s.k - 1; k >= 0; --k) {
          const T x = a.at(batch, i, k), y = b.at(batch, k, j);
          sums[k & 1] += tf32 ? to_tf32(x) * to_tf32(y) : x * y;
        }
        T& to = c[batch * stride + j * leading + i];
        const T product = alpha * (sums[0] + sums[1]);
        to = beta == T(0) ? product : product + beta * to;
      }
    }
  }
}

// Elements from the first to the last of all batches.
std::size_t extent(std::int64_t rows, std::int64_t columns, std::int64_t leading,
                   std::int64_t stride, std::int64_t batches) {
  if (rows == 0 || columns == 0 || batches == 0) return 0;
  return static_cast<std::size_t>((batches - 1) * stride + (columns - 1) * leading + rows);
}

template <class T>
struct Product {
  Sizes s;
  bool tf32;
  T alpha, beta;
  Matrix<T> a, b;
  T* c;
  std::int64_t leading, stride;

  std::vector<Operand> operands() const {
    const auto factor = [&](const Matrix<T>& x, std::int64_t rows, std::int64_t columns) {
      if (x.transposed) std::swap(rows, columns);
      return Operand{x.data, sizeof(T) * extent(rows, columns, x.leading, x.stride, s.batches),
                     true, false};
    };
    return {factor(a, s.m, s.k),
            factor(b, s.k, s.n),
            {c, sizeof(T) * extent(s.m, s.n, leading, stride, s.batches), beta != T(0), true}};
  }
  void operator()() const { multiply(s, tf32, alpha, a, b, beta, c, leading, stride); }
};

}  // namespace
}  // namespace ddproof::standin

using ddproof::standin::Machine;
using ddproof::standin::Memory;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = nullptr;
  return ddproof::standin::status_of(
      ddproof::standin::answer("cublasCreate", [&](Machine& machine) {
        *handle = static_cast<cublasHandle_t>(machine.memory().add(
            Memory::Kind::kPinnedHost, machine.device(), machine.rank(), sizeof(cublasContext)));
        return cudaSuccess;
      }));
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return ddproof::standin::status_of(
      ddproof::standin::answer("cublasDestroy", [&](Machine& machine) {
        if (ddproof::standin::is_stale_handle(machine, "cublasDestroy", handle)) {
          return cudaErrorInvalidValue;
        }
        (void)machine.memory().free(handle, Memory::Kind::kPinnedHost);
        return cudaSuccess;
      }));
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return ddproof::standin::status_of(
      ddproof::standin::answer("cublasSetStream", [&](Machine& machine) {
        if (ddproof::standin::is_stale_handle(machine, "cublasSetStream", handle) ||
            ddproof::standin::is_stale(machine, "cublasSetStream", stream)) {
          return cudaErrorInvalidValue;
        }
        handle->stream = stream;
        return cudaSuccess;
      }));
}

// Of one type: float, also by TF32, or double.
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType a_type,
                                          int lda, long long int a_stride, const void* b,
                                          cudaDataType b_type, int ldb, long long int b_stride,
                                          const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long int c_stride, int batches,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  constexpr const char* kCall = "cublasGemmStridedBatchedEx";
  Machine* const current = ddproof::standin::current_machine();
  if (current == nullptr || ddproof::standin::is_stale_handle(*current, kCall, handle)) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  const bool is_double = c_type == CUDA_R_64F;
  const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const bool a_trans = transa != CUBLAS_OP_N, b_trans = transb != CUBLAS_OP_N;
  if (a_type != c_type || b_type != c_type || m < 0 || n < 0 || k < 0 || batches < 0 ||
      (is_double ? compute != CUBLAS_COMPUTE_64F : compute != CUBLAS_COMPUTE_32F && !tf32) ||
      lda < std::max(1, a_trans ? k : m) || ldb < std::max(1, b_trans ? n : k) ||
      ldc < std::max(1, m)) {
    current->complain(kCall, "sizes, leading dimensions or types do not fit");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto launch = [&]<class T>(T) {
    const ddproof::standin::Product<T> product{{m, n, k, batches},
                                               tf32,
                                               *static_cast<const T*>(alpha),
                                               *static_cast<const T*>(beta),
                                               {static_cast<const T*>(a), lda, a_stride, a_trans},
                                               {static_cast<const T*>(b), ldb, b_stride, b_trans},
                                               static_cast<T*>(c),
                                               ldc,
                                               c_stride};
    return ddproof::standin::launch_twin(kCall, product.operands(), product, handle->stream);
  };
  return ddproof::standin::status_of(is_double ? launch(double{}) : launch(float{}));
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    default: return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

}  // extern "C"
