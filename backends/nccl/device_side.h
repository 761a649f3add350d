// What a group has on its device. Made on the calling thread's device.
#pragma once

#include "backends/api/runtime.h"
#include "backends/nccl/communicator.h"
#include "backends/nccl/cuda_calls.h"
#include "backends/nccl/pinned_pool.h"

namespace ddproof::nccl {

struct DeviceSide {
  // Both must outlive this.
  DeviceSide(Runtime& runtime, PinnedPool& pinned)
      : pinned(pinned), memory(stream), communicator(runtime) {}

  PinnedPool& pinned;
  Stream stream;  // of all its calls, in their order
  DeviceMemory memory;
  Communicator communicator;  // ends first: its calls use the others
};

}  // namespace ddproof::nccl
