// CUDA devices, from shared libraries of their own (ddproof_cuda.so, and ddproof_cuda_fast.so with
// cuBLAS, which is large) that are loaded when somebody asks: so one program runs on machines with
// and without CUDA.
//
// A library is looked for once per process and stays loaded. Threads: any.
#pragma once

#include <memory>

#include "reference/compute/cuda/cuda_math.h"
#include "reference/compute/device.h"

namespace ddproof {

// Throws ResourceError, saying in one line why there is none: a build without CUDA, no driver, no
// such device, no cuBLAS.
std::unique_ptr<Device<float>> make_cuda_device(int device, CudaMath math);

}  // namespace ddproof
