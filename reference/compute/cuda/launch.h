// Kernels, written once: nvcc compiles them for a device, a host compiler into host twins that run
// on the CPU stand-in (backends/nccl/standin), in the stream's order either way.
//
// A kernel is a value with a name, what memory it touches, and one of two bodies:
//
//   static constexpr const char* kName;
//   template <class See> void operands(See see) const;    // see.reads(p, n), writes, updates
//   void operator()(std::int64_t i) const;                // for each i, in any order
//   void block(std::int64_t i, Shared&, Threads&) const;  // for each block i of kThreads threads
//
// A block's body works in phases: threads.each(body) runs body(thread, its Registers) in all
// threads of the block, and ends when all are done. Between phases the threads share Shared.
//
// Threads: those of the stream's owner. The stream's device is the calling thread's.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reference/compute/host_device.h"

#ifndef __CUDACC__
#include <vector>

#include "backends/nccl/standin/host_twin.h"
#include "reference/compute/isa.h"
#endif

namespace ddproof::internal {

#ifdef __CUDACC__

template <class Registers>
class DeviceThreads {
 public:
  template <class Body>
  __device__ void each(Body body) {
    body(static_cast<int>(threadIdx.x), registers_);
    __syncthreads();
  }

 private:
  Registers registers_;
};

template <class Kernel>
__global__ void run_each(Kernel kernel, std::int64_t count) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    kernel(i);
  }
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads) run_block(Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  DeviceThreads<typename Kernel::Registers> threads;
  kernel.block(blockIdx.x, shared, threads);
}

template <class Kernel>
cudaError_t launch_each(const Kernel& kernel, std::int64_t count, cudaStream_t stream) {
  constexpr std::int64_t kThreads = 256, kBlocksMax = 1 << 16;
  if (count <= 0) return cudaSuccess;
  const std::int64_t blocks = std::min(kBlocksMax, (count + kThreads - 1) / kThreads);
  run_each<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(kernel, count);
  return cudaGetLastError();
}

// Requires: blocks < 2^31.
template <class Kernel>
cudaError_t launch_blocks(const Kernel& kernel, std::int64_t blocks, cudaStream_t stream) {
  if (blocks <= 0) return cudaSuccess;
  run_block<<<static_cast<unsigned>(blocks), Kernel::kThreads, 0, stream>>>(kernel);
  return cudaGetLastError();
}

#else

// One after another.
template <class Registers, int kThreads>
class HostThreads {
 public:
  template <class Body>
  void each(Body body) {
    for (int thread = 0; thread < kThreads; ++thread) body(thread, registers_[thread]);
  }

 private:
  Registers registers_[kThreads];
};

struct OperandList {
  template <class T>
  void reads(const T* data, std::int64_t count) {
    add(data, count, true, false);
  }
  template <class T>
  void writes(const T* data, std::int64_t count) {
    add(data, count, false, true);
  }
  template <class T>
  void updates(const T* data, std::int64_t count) {
    add(data, count, true, true);
  }
  template <class T>
  void add(const T* data, std::int64_t count, bool is_read, bool is_written) {
    list->push_back({data, static_cast<std::size_t>(count) * sizeof(T), is_read, is_written});
  }
  std::vector<standin::Operand>* list;
};

template <class Body>
[[gnu::flatten]] void run_body(const Body& body, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

#if defined(__x86_64__)
// With an instruction for the fused multiply-add, which is a call otherwise.
template <class Body>
[[gnu::target("avx2,fma"), gnu::flatten]] void run_body_avx2(const Body& body, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}
#endif

template <class Kernel, class Body>
cudaError_t launch_body(const Kernel& kernel, std::int64_t count, cudaStream_t stream, Body body) {
  if (count <= 0) return cudaSuccess;
  std::vector<standin::Operand> operands;
  kernel.operands(OperandList{&operands});
  return standin::launch_twin(
      Kernel::kName, std::move(operands),
      [=] {
#if defined(__x86_64__)
        if (best_isa() != Isa::kPortable) return run_body_avx2(body, count);
#endif
        run_body(body, count);
      },
      stream);
}

template <class Kernel>
cudaError_t launch_each(const Kernel& kernel, std::int64_t count, cudaStream_t stream) {
  return launch_body(kernel, count, stream, kernel);
}

template <class Kernel>
cudaError_t launch_blocks(const Kernel& kernel, std::int64_t blocks, cudaStream_t stream) {
  return launch_body(kernel, blocks, stream, [kernel](std::int64_t i) {
    typename Kernel::Shared shared;
    HostThreads<typename Kernel::Registers, Kernel::kThreads> threads;
    kernel.block(i, shared, threads);
  });
}

#endif

}  // namespace ddproof::internal
