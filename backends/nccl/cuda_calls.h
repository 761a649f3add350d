// The CUDA runtime's C API with its errors as exceptions and its handles as owners.
//
// A failed call is this rank's own failure: its device, driver or memory. Owners never throw while
// they free.
// Threads: those of the rank; one handle by one task at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "backends/api/error.h"

namespace ddproof::nccl {

// A call to CUDA or NCCL failed on this rank, by itself. The text: which call, what it said.
class LibraryError : public ResourceError {
 public:
  using ResourceError::ResourceError;
};

// Throws LibraryError "cudaMalloc of 64 bytes on device 1: out of memory" unless `result` is
// cudaSuccess.
void check_cuda(cudaError_t result, const std::string& call);

// Makes it the calling thread's device, and leaves it so: setting another one back would make a
// context, and take memory, on a device that this rank has no business with. Throws LibraryError.
void use_device(int device);

// A stream that does not wait for the default stream. Made on the calling thread's device.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// A point in a stream, without timing. Made on the calling thread's device.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  // Requires: the stream is of its device.
  void record(cudaStream_t stream);
  // What enters `stream` from now on begins when all is done that was before the record.
  void hold_back(cudaStream_t stream) const;
  // Whether all that was in the stream when it was recorded is done. Throws LibraryError.
  bool is_done() const;

 private:
  cudaEvent_t event_ = nullptr;
};

// Device memory that only grows; what it held is lost when it does. Contents start undefined. Given
// out and back in the order of the stream: cudaMalloc and cudaFree may wait for all that runs on
// the device, also for calls of other groups.
class DeviceMemory {
 public:
  // Allocates nothing. `stream` must outlive this.
  explicit DeviceMemory(const Stream& stream) : stream_(stream) {}
  ~DeviceMemory() { release(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // At least `bytes`, for what is enqueued in the stream from now on; throws LibraryError when
  // there is no more.
  std::byte* at_least(std::size_t bytes);

 private:
  void release() noexcept;

  const Stream& stream_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Why `device` cannot work on the memory, or with the stream; empty: it can. Throws LibraryError.
std::string why_not_on(int device, const void* memory);
std::string why_not_on(int device, cudaStream_t stream);

// How many devices this process sees. Throws LibraryError also when there is no driver.
int count_devices();

// What tells a device from all others, also those of other machines, and its name for people.
struct DeviceIdentity {
  std::string uuid;  // hexadecimal
  std::string name;  // "NVIDIA H200"
};
DeviceIdentity identify_device(int device);

}  // namespace ddproof::nccl
