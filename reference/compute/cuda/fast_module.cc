// What cuda_module.h finds in the shared library ddproof_cuda_fast.so, which needs cuBLAS.
#include <exception>
#include <memory>
#include <string>

#include "reference/compute/cuda/fast_cuda.h"

// As in module.cc.
extern "C" ddproof::Device<float>* ddproof_make_cuda_device(int device, ddproof::CudaMath math,
                                                            std::string& why_not) {
  try {
    return std::make_unique<ddproof::FastCuda<float>>(device, math).release();
  } catch (const std::exception& error) {
    why_not = error.what();
    return nullptr;
  }
}
