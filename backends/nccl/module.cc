// What backends/registry finds in the shared library ddproof_nccl.so.
#include <memory>
#include <string>

#include "backends/nccl/nccl_backend.h"

// Null, and the reason in `why_not`, when this process cannot use NCCL; else the caller's.
extern "C" ddproof::Backend* ddproof_make_nccl_backend(const ddproof::ProcessHost& host,
                                                       std::string& why_not) {
  why_not = ddproof::why_no_nccl();
  if (!why_not.empty()) return nullptr;
  return std::make_unique<ddproof::NcclBackend>(host).release();
}
