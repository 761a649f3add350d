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

namespace ddproof::nccl {

// What a group owns on its device.
struct DeviceSide {
  explicit DeviceSide(int device)
      : pinned(StagingMemory::Place::kPinnedHost, device),
        memory(StagingMemory::Place::kDevice, device) {}

  Stream stream;
  Event event;
  StagingMemory pinned;
  StagingMemory memory;
  Communicator communicator;
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
