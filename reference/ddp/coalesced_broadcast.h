// Gives every rank the tensors of one rank, several in one broadcast.
//
// Source: PyTorch 1.13.1's broadcast of coalesced tensors: chunks of 250 MiB, at most two in flight
// (SEMANTICS section 2). Threads: one task at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/process_group.h"
#include "reference/compute/tensor.h"
#include "reference/ddp/buckets.h"

namespace ddproof {

inline constexpr std::int64_t kBroadcastChunkBytes = std::int64_t{250} << 20;
inline constexpr std::size_t kBroadcastsInFlight = 2;

// A collective call, synchronous. `what` labels it. No tensors: nothing is done.
// Requires: the same counts on all ranks; tensors of one device. Takes memory for two chunks.
template <class T>
void broadcast_coalesced(ProcessGroup& group, const std::vector<Tensor<T>*>& tensors, int root,
                         const std::string& what, std::int64_t chunk_bytes = kBroadcastChunkBytes) {
  struct Chunk {
    std::vector<Tensor<T>*> tensors;
    Tensor<T> flat;
    WorkPtr work;
  };
  std::vector<BucketTensor> sizes;
  for (const Tensor<T>* tensor : tensors) {
    sizes.push_back({.bytes = tensor->count() * std::int64_t{sizeof(T)}, .type = element_of<T>()});
  }
  if (sizes.empty()) return;
  std::deque<Chunk> running;
  const auto unpack_first = [&] {
    Chunk& chunk = running.front();
    chunk.work->wait();
    T* from = chunk.flat.data();
    for (Tensor<T>* tensor : chunk.tensors) {
      tensor->device().copy(tensor->data(), from, tensor->count());
      from += tensor->count();
    }
    running.pop_front();
  };
  const std::int64_t limits[] = {chunk_bytes};
  const auto chunks = assign_buckets(sizes, limits).buckets;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (running.size() == kBroadcastsInFlight) unpack_first();
    Chunk& chunk = running.emplace_back();
    std::int64_t count = 0;
    for (std::size_t index : chunks[i]) {
      chunk.tensors.push_back(tensors[index]);
      count += tensors[index]->count();
    }
    Device<T>& device = chunk.tensors[0]->device();
    chunk.flat = Tensor<T>(device, {count});
    T* to = chunk.flat.data();
    for (const Tensor<T>* tensor : chunk.tensors) {
      device.copy(to, tensor->data(), tensor->count());
      to += tensor->count();
    }
    const std::string label = chunks.size() == 1 ? what : what + ", chunk " + std::to_string(i);
    chunk.work = group.broadcast(chunk.flat.buffer(), root, {.label = label});
  }
  while (!running.empty()) unpack_first();
}

}  // namespace ddproof
