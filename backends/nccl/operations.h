// One function per operation: stages the caller's host buffers through the device, runs NCCL,
// waits.
//
// Each call: pinned memory <- buffers, then on the group's stream: device <- pinned memory, NCCL,
// pinned memory <- device, an event; once the event is done, buffers <- pinned memory. So a call
// that fails has changed no buffer. Zero-sized calls send nothing.
// Requires, for all: the call was checked (CallChecker); the calling thread's device is the
// group's. Throws what Communicator throws.
#pragma once

#include "backends/api/call.h"
#include "backends/nccl/communicator.h"
#include "backends/nccl/cuda_calls.h"
#include "backends/nccl/patience.h"
#include "backends/nccl/pinned_pool.h"

namespace ddproof::nccl {

// What a group has on its device. Made on the calling thread's device.
struct DeviceSide {
  // `pinned` must outlive this.
  explicit DeviceSide(PinnedPool& pinned) : pinned(pinned), memory(stream) {}

  PinnedPool& pinned;
  Stream stream;
  Event event;
  DeviceMemory memory;
  Communicator communicator;  // ends first: its calls use the others
};

// One call of one rank.
struct Operation {
  DeviceSide& device;
  const Call& call;
  const Patience& patience;
  int rank = 0;
  int size = 1;
};

// The one of the call; not monitored_barrier, which is the store's (monitored_barrier.h).
void run(const Operation& operation);

}  // namespace ddproof::nccl
