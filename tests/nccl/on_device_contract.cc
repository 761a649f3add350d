// The contract's backend is `nccl` on the stand-in, with every buffer in device memory.
#include "backends/checked/checked_backend.h"
#include "tests/contract/tested_backends.h"
#include "tests/nccl/on_device_backend.h"
#include "tests/nccl/standin_world.h"

namespace ddproof::contract {

std::vector<std::string> tested_backends() { return {"nccl"}; }

std::unique_ptr<Backend> make_tested_backend(const std::string&) {
  return std::make_unique<OnDeviceBackend>(
      std::make_unique<CheckedBackend>(std::make_unique<StandinBackend>()));
}

}  // namespace ddproof::contract
