#include "reference/compute/cuda/cuda_module.h"

#include <dlfcn.h>

#include <string>

#include "backends/api/error.h"

// Paths of the modules that were built.
#ifndef DDPROOF_CUDA_MODULE
#define DDPROOF_CUDA_MODULE nullptr
#endif
#ifndef DDPROOF_CUDA_FAST_MODULE
#define DDPROOF_CUDA_FAST_MODULE nullptr
#endif

namespace ddproof {
namespace {

// Of module.cc and fast_module.cc.
using MakeDevice = Device<float>*(int device, CudaMath math, std::string& why_not);

struct Module {
  MakeDevice* make = nullptr;
  std::string why_not;
};

Module load(const char* path) {
  if (path == nullptr) return {nullptr, "built without nvcc or cuBLAS (DDPROOF_WITH_CUDA)"};
  // First, since it is small and says what is wrong on most machines; the module needs it later.
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) {
    return {nullptr, std::string("no NVIDIA driver (") + dlerror() + ")"};
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, dlerror()};
  void* symbol = dlsym(library, "ddproof_make_cuda_device");
  if (symbol == nullptr) return {nullptr, dlerror()};
  return {reinterpret_cast<MakeDevice*>(symbol), {}};
}

const Module& fixed_order() {
  static const Module module = load(DDPROOF_CUDA_MODULE);
  return module;
}

const Module& fast() {
  static const Module module = load(DDPROOF_CUDA_FAST_MODULE);
  return module;
}

}  // namespace

std::unique_ptr<Device<float>> make_cuda_device(int device, CudaMath math) {
  const Module& module = math == CudaMath::kFixedOrder ? fixed_order() : fast();
  std::string why_not = module.why_not;
  std::unique_ptr<Device<float>> made(module.make ? module.make(device, math, why_not) : nullptr);
  if (!made) throw ResourceError("no CUDA device: " + why_not);
  return made;
}

}  // namespace ddproof
