// How a CUDA device computes products of matrices.
#pragma once

namespace ddproof {

enum class CudaMath {
  kFixedOrder,  // kernels with the bits of Cpu<T>
  kFast,        // cuBLAS, in an order of its own: within the rounding bound
  kFastTf32,    // as kFast; float factors lose 13 of their 23 bits of fraction
};

}  // namespace ddproof
