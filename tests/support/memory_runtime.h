// The operating system's Runtime, but with files in memory.
#pragma once

#include "backends/local/os_runtime.h"
#include "tests/support/memory_files.h"

namespace ddproof {

class MemoryRuntime final : public OsRuntime {
 public:
  MemoryFiles& files() override { return files_; }

 private:
  MemoryFiles files_;
};

}  // namespace ddproof
