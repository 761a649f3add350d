#include "reference/compute/cuda/cuda_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/api/error.h"

namespace ddproof::internal {

void check_cuda(cudaError_t result, int device, const std::string& call) {
  if (result == cudaSuccess) return;
  (void)cudaGetLastError();  // so that no later call reports this one again
  throw ResourceError("CUDA device " + std::to_string(device) + ": " + call + ": " +
                      cudaGetErrorString(result));
}

void* allocate_in(cudaStream_t stream, std::size_t bytes, int device) {
  void* data = nullptr;
  if (bytes == 0) return data;
  check_cuda(cudaMallocAsync(&data, bytes, stream), device,
             "cudaMallocAsync of " + std::to_string(bytes) + " bytes");
  return data;
}

PinnedStaging::~PinnedStaging() {
  for (const Slot& slot : slots_) {
    (void)cudaFreeHost(slot.memory);
    (void)cudaEventDestroy(slot.arrived);
  }
}

void PinnedStaging::send(void* to, const void* host, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  const Slot& slot = take(bytes);
  std::memcpy(slot.memory, host, bytes);
  check_cuda(cudaMemcpyAsync(to, slot.memory, bytes, cudaMemcpyHostToDevice, stream), device_,
             "cudaMemcpyAsync");
  check_cuda(cudaEventRecord(slot.arrived, stream), device_, "cudaEventRecord");
}

PinnedStaging::Slot& PinnedStaging::take(std::size_t bytes) {
  for (Slot& slot : slots_) {
    if (slot.bytes < bytes) continue;
    const cudaError_t state = cudaEventQuery(slot.arrived);
    if (state == cudaErrorNotReady) continue;
    check_cuda(state, device_, "cudaEventQuery");
    return slot;
  }
  constexpr std::size_t kLeast = 4096;
  Slot slot{.bytes = std::bit_ceil(std::max(bytes, kLeast))};
  check_cuda(cudaEventCreateWithFlags(&slot.arrived, cudaEventDisableTiming), device_,
             "cudaEventCreate");
  const cudaError_t result = cudaMallocHost(&slot.memory, slot.bytes);
  if (result != cudaSuccess) (void)cudaEventDestroy(slot.arrived);
  check_cuda(result, device_, "cudaMallocHost of " + std::to_string(slot.bytes) + " bytes");
  return slots_.emplace_back(slot);
}

}  // namespace ddproof::internal
