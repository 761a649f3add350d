// Errors of the CUDA runtime as exceptions, and pinned memory on its way to a device.
//
// Threads: those of the device's owner.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

namespace ddproof::internal {

// Throws ResourceError "CUDA device 0: cudaMallocAsync of 64 bytes: out of memory" unless `result`
// is cudaSuccess.
void check_cuda(cudaError_t result, int device, const std::string& call);

// Memory of the device for what enters the stream from now on. Contents start undefined.
// Throws ResourceError. 0 bytes: null.
void* allocate_in(cudaStream_t stream, std::size_t bytes, int device);

// The same for a scope; given back in the stream's order.
class Scratch {
 public:
  Scratch(cudaStream_t stream, std::size_t bytes, int device)
      : stream_(stream), data_(allocate_in(stream, bytes, device)) {}
  ~Scratch() {
    if (data_ != nullptr) (void)cudaFreeAsync(data_, stream_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  cudaStream_t stream_;
  void* data_;
};

// Copies of host memory that are on their way. The memory that held one is used again when it has
// arrived; so there is as much as was ever under way at once, and nothing waits. It is given back
// at the end, since CUDA waits for the device then.
class PinnedStaging {
 public:
  // Requires: the calling thread's device is `device`.
  explicit PinnedStaging(int device) : device_(device) {}
  ~PinnedStaging();
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;

  // Puts the copy into the stream. The host's memory may change when this returns.
  // Throws ResourceError.
  void send(void* to, const void* host, std::size_t bytes, cudaStream_t stream);

 private:
  struct Slot {
    void* memory = nullptr;
    std::size_t bytes = 0;
    cudaEvent_t arrived = nullptr;
  };
  // One that is free and large enough, else a new one.
  Slot& take(std::size_t bytes);

  int device_;
  std::vector<Slot> slots_;
};

}  // namespace ddproof::internal
