// The backend `nccl` is a shared library of its own (ddproof_nccl.so), loaded when somebody asks
// for it: so one program runs on machines with and without CUDA.
//
// The library is looked for once per process and stays loaded. Threads: any.
#pragma once

#include <memory>
#include <string>

#include "backends/api/backend.h"
#include "backends/api/process_host.h"

namespace ddproof {

// Why this process has no backend `nccl`, in one line; empty: it has. The text lives for ever.
const std::string& why_no_nccl_module();

// Requires: why_no_nccl_module() is empty.
std::unique_ptr<Backend> make_nccl_backend(const ProcessHost& host);

}  // namespace ddproof
