// Pinned host memory of one rank, for all of its groups.
//
// Nothing is freed before the pool is: cudaFreeHost waits for all that runs on the device, so a
// group that grows would wait for another one's call, which may wait for this rank. Threads: any
// task of the rank.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "backends/api/runtime.h"

namespace ddproof::nccl {

class PinnedPool {
 public:
  // Memory of one call. It goes back to the pool by give_back() alone: after a failure the device
  // may still write to it.
  class Lease {
   public:
    Lease(PinnedPool& pool, std::byte* data, std::size_t bytes)
        : pool_(pool), data_(data), bytes_(bytes) {}
    std::byte* data() const { return data_; }
    // Requires: nothing that was enqueued uses it.
    void give_back() const;

   private:
    PinnedPool& pool_;
    std::byte* data_;
    std::size_t bytes_;
  };

  // `runtime` must outlive the pool.
  explicit PinnedPool(Runtime& runtime) : monitor_(runtime.make_monitor()) {}
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // At least `bytes`. Throws LibraryError when there is no more.
  Lease take(std::size_t bytes);

 private:
  std::unique_ptr<Monitor> monitor_;  // guards all below
  std::vector<std::byte*> all_;
  std::multimap<std::size_t, std::byte*> free_;  // by size
};

}  // namespace ddproof::nccl
