#include "backends/nccl/pinned_pool.h"

#include <bit>

#include "backends/nccl/cuda_calls.h"

namespace ddproof::nccl {

void PinnedPool::Lease::give_back() const {
  MonitorLock lock(*pool_.monitor_);
  pool_.free_.emplace(bytes_, data_);
}

PinnedPool::~PinnedPool() {
  for (std::byte* data : all_) (void)cudaFreeHost(data);
}

PinnedPool::Lease PinnedPool::take(std::size_t bytes) {
  MonitorLock lock(*monitor_);
  if (const auto found = free_.lower_bound(bytes); found != free_.end()) {
    const Lease lease(*this, found->second, found->first);
    free_.erase(found);
    return lease;
  }
  // Few sizes, so that calls of different sizes share blocks.
  const std::size_t rounded = std::bit_ceil(bytes);
  void* data = nullptr;
  check_cuda(cudaMallocHost(&data, rounded),
             "cudaMallocHost of " + std::to_string(rounded) + " bytes");
  all_.push_back(static_cast<std::byte*>(data));
  return {*this, all_.back(), rounded};
}

}  // namespace ddproof::nccl
