// The real module, linked with the real libraries: it loads, or says why not.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/api/process_host.h"
#include "backends/registry/registry.h"

namespace ddproof {
namespace {

BackendInfo nccl_info() {
  for (const BackendInfo& info : list_backends()) {
    if (info.name == "nccl") return info;
  }
  return {};
}

TEST(NcclModule, LoadsAndSaysWhatThisMachineLacks) {
  void* library = dlopen(DDPROOF_NCCL_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  using MakeBackend = Backend*(const ProcessHost&, std::string&);
  auto* make = reinterpret_cast<MakeBackend*>(dlsym(library, "ddproof_make_nccl_backend"));
  ASSERT_NE(make, nullptr) << dlerror();
  std::string why_not;
  const std::unique_ptr<Backend> backend(make(ProcessHost{}, why_not));
  EXPECT_EQ(backend == nullptr, !why_not.empty());
  if (backend) {
    EXPECT_EQ(backend->name(), "nccl");
  } else {
    EXPECT_TRUE(why_not.starts_with("cudaGetDeviceCount: ") || why_not.starts_with("NCCL is "))
        << why_not;
  }
}

TEST(NcclModule, TheRegistryHasItOrSaysInOneLineWhyNot) {
  const BackendInfo info = nccl_info();
  EXPECT_EQ(info.what, "NCCL between CUDA devices");
  EXPECT_EQ(info.available, info.why_not.empty());
  EXPECT_EQ(info.why_not.find('\n'), std::string_view::npos);
}

}  // namespace
}  // namespace ddproof
