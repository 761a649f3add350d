// The real modules, linked with the real libraries: a device computes, or one line says why not.
#include "reference/compute/cuda/cuda_module.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/api/error.h"

namespace ddproof {
namespace {

#ifdef DDPROOF_CUDA_MODULES

TEST(CudaModule, LoadsAndSaysWhatThisMachineLacks) {
  for (const char* path : {DDPROOF_CUDA_MODULES}) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    using MakeDevice = Device<float>*(int device, CudaMath math, std::string& why_not);
    auto* make = reinterpret_cast<MakeDevice*>(dlsym(library, "ddproof_make_cuda_device"));
    ASSERT_NE(make, nullptr) << dlerror();
    std::string why_not;
    const std::unique_ptr<Device<float>> device(make(1000, CudaMath::kFast, why_not));
    EXPECT_EQ(device, nullptr);
    EXPECT_TRUE(why_not.starts_with("CUDA device 1000: cudaSetDevice: ")) << why_not;
  }
}

#endif

TEST(CudaModule, ComputesOrSaysInOneLineWhatThisMachineLacks) {
  for (const CudaMath math : {CudaMath::kFixedOrder, CudaMath::kFast, CudaMath::kFastTf32}) {
    try {
      const std::unique_ptr<Device<float>> device = make_cuda_device(0, math);
      EXPECT_EQ(device->name(), "cuda");
      float* data = device->allocate(1);
      device->fill(data, 1, 2.5f);
      float value = 0;
      device->copy_to_host(&value, data, 1);
      device->deallocate(data);
      EXPECT_EQ(value, 2.5f);
    } catch (const ResourceError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("no CUDA device: ")) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      RecordProperty("why_not", text);
    }
  }
}

}  // namespace
}  // namespace ddproof
