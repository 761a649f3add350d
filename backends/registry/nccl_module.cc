#include "backends/registry/nccl_module.h"

#ifdef DDPROOF_WITH_NCCL
#include <dlfcn.h>
#endif

#include "backends/api/check.h"

namespace ddproof {
namespace {

// Of backends/nccl/module.cc.
using MakeBackend = Backend*(const ProcessHost& host, std::string& why_not);

struct Module {
  MakeBackend* make = nullptr;
  std::string why_not;
};

#ifdef DDPROOF_WITH_NCCL

Module load() {
  // First, since it is small and says what is wrong on most machines; the module needs it later.
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == nullptr) {
    return {nullptr, std::string("no NVIDIA driver (") + dlerror() + ")"};
  }
  void* library = dlopen(DDPROOF_NCCL_MODULE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, dlerror()};
  void* symbol = dlsym(library, "ddproof_make_nccl_backend");
  if (symbol == nullptr) return {nullptr, dlerror()};
  Module module{reinterpret_cast<MakeBackend*>(symbol), {}};
  const std::unique_ptr<Backend> usable(module.make(ProcessHost{}, module.why_not));
  return module;
}

#else

Module load() { return {nullptr, "built without CUDA and NCCL (DDPROOF_WITH_NCCL=OFF)"}; }

#endif

const Module& module() {
  static const Module loaded = load();
  return loaded;
}

}  // namespace

const std::string& why_no_nccl_module() { return module().why_not; }

std::unique_ptr<Backend> make_nccl_backend(const ProcessHost& host) {
  std::string why_not;
  std::unique_ptr<Backend> backend(module().make(host, why_not));
  DDPROOF_CHECK(backend != nullptr);
  return backend;
}

}  // namespace ddproof
