// What cuda_module.h finds in the shared library ddproof_cuda.so.
#include <exception>
#include <memory>
#include <string>

#include "reference/compute/cuda/cuda.h"
#include "reference/compute/cuda/cuda_math.h"

// Null, and the reason in `why_not`, when this process has no such device; else the caller's.
extern "C" ddproof::Device<float>* ddproof_make_cuda_device(int device, ddproof::CudaMath,
                                                            std::string& why_not) {
  try {
    return std::make_unique<ddproof::Cuda<float>>(device).release();
  } catch (const std::exception& error) {
    why_not = error.what();
    return nullptr;
  }
}
