// The stand-in's own checks: each planted misuse is named, in one line, and nothing else is.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "backends/nccl/standin/host_twin.h"
#include "tests/nccl/standin_world.h"

namespace ddproof {
namespace {

using Lines = std::vector<std::string>;

// `body` on rank 0 of a machine with two devices.
Lines complaints_of(const std::function<void()>& body, std::uint64_t seed = 1) {
  return run_on_machine(1, {.devices = 2}, seed, [&](int) { body(); }).complaints;
}

struct OnDevice {
  explicit OnDevice(std::size_t bytes) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&pinned, bytes), cudaSuccess);
  }
  ~OnDevice() {
    (void)cudaFree(memory);
    (void)cudaFreeHost(pinned);
    (void)cudaStreamDestroy(stream);
  }
  void to_device(std::size_t bytes) const {
    (void)cudaMemcpyAsync(memory, pinned, bytes, cudaMemcpyHostToDevice, stream);
  }
  void to_host(std::size_t bytes) const {
    (void)cudaMemcpyAsync(pinned, memory, bytes, cudaMemcpyDeviceToHost, stream);
  }
  cudaStream_t stream = nullptr;
  void* memory = nullptr;
  void* pinned = nullptr;
};

TEST(Standin, ARightProgramLeavesNoComplaint) {
  EXPECT_EQ(complaints_of([] {
              const OnDevice device(64);
              auto* numbers = static_cast<std::uint8_t*>(device.pinned);
              std::fill_n(numbers, 64, std::uint8_t{7});
              device.to_device(64);
              EXPECT_EQ(cudaStreamSynchronize(device.stream), cudaSuccess);
              std::fill_n(numbers, 64, std::uint8_t{0});
              device.to_host(64);
              EXPECT_EQ(cudaStreamSynchronize(device.stream), cudaSuccess);
              EXPECT_EQ(std::count(numbers, numbers + 64, 7), 64);
            }),
            Lines{});
}

TEST(Standin, UseAfterFreeIsNamed) {
  EXPECT_EQ(complaints_of([] {
              const OnDevice device(64);
              void* gone = nullptr;
              (void)cudaMalloc(&gone, 64);
              (void)cudaFree(gone);
              (void)cudaMemcpyAsync(gone, device.pinned, 8, cudaMemcpyHostToDevice, device.stream);
              (void)cudaStreamSynchronize(device.stream);
            })[0],
            "rank 0: cudaMemcpyAsync: writes memory that was freed");
}

TEST(Standin, AccessOutOfBoundsIsNamed) {
  EXPECT_EQ(complaints_of([] {
              const OnDevice device(64);
              device.to_device(65);
              (void)cudaStreamSynchronize(device.stream);
            })[0],
            "rank 0: cudaMemcpyAsync: reads bytes 0 to 65 of a block of 64");
}

TEST(Standin, ReadsOfMemoryThatNothingWroteAreNamed) {
  EXPECT_EQ(complaints_of([] {
              const OnDevice device(64);
              device.to_device(32);
              device.to_host(33);
              (void)cudaStreamSynchronize(device.stream);
            }),
            Lines{"rank 0: cudaMemcpyAsync: reads device memory that nothing has written yet"});
}

TEST(Standin, MemoryOfAnotherDeviceIsNamed) {
  EXPECT_EQ(complaints_of([] {
              const OnDevice first(64);
              (void)cudaSetDevice(1);
              const OnDevice second(64);
              (void)cudaMemcpyAsync(first.memory, second.pinned, 8, cudaMemcpyHostToDevice,
                                    second.stream);
              (void)cudaStreamSynchronize(second.stream);
              (void)cudaSetDevice(0);
            })[0],
            "rank 0: cudaMemcpyAsync: writes memory of device 0 of host 0 from a stream of device "
            "1 of host 0");
}

TEST(Standin, FreesThatDoNotFitAreNamed) {
  EXPECT_EQ(complaints_of([] {
              void *device = nullptr, *pinned = nullptr;
              int here = 0;
              (void)cudaMalloc(&device, 8);
              (void)cudaMallocHost(&pinned, 8);
              EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
              EXPECT_EQ(cudaFreeHost(device), cudaErrorInvalidValue);
              EXPECT_EQ(cudaFree(&here), cudaErrorInvalidValue);
              (void)cudaFree(device);
              EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue);
              (void)cudaFreeHost(pinned);
            }),
            (Lines{"rank 0: cudaFree: this is pinned host memory",
                   "rank 0: cudaFreeHost: this is device memory",
                   "rank 0: cudaFree: the address was not given out by it",
                   "rank 0: cudaFree: this memory was freed already"}));
}

TEST(Standin, WhatIsNotGivenBackIsNamed) {
  EXPECT_EQ(complaints_of([] {
              void* memory = nullptr;
              cudaStream_t stream = nullptr;
              cudaEvent_t event = nullptr;
              (void)cudaMalloc(&memory, 8);
              (void)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
              (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
            }),
            (Lines{"rank 0: cudaMalloc: 8 bytes were never freed",
                   "rank 0: cudaStreamCreate: the stream was never destroyed",
                   "rank 0: cudaEventCreate: the event was never destroyed"}));
}

TEST(Standin, WrongKindsOfCopyAndStaleStreamsAreNamed) {
  EXPECT_EQ(complaints_of([] {
              const OnDevice device(8);
              (void)cudaMemcpyAsync(device.memory, device.pinned, 8, cudaMemcpyDeviceToHost,
                                    device.stream);
              (void)cudaMemsetAsync(device.memory, 0, 8, nullptr);
              cudaStream_t gone = nullptr;
              (void)cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking);
              (void)cudaStreamDestroy(gone);
              (void)cudaMemsetAsync(device.memory, 0, 8, gone);
            }),
            (Lines{"rank 0: cudaMemcpyAsync: the pointers are not where the kind of copy says",
                   "rank 0: cudaMemsetAsync: uses the default stream, which waits for all others",
                   "rank 0: cudaMemsetAsync: the stream was destroyed"}));
}

TEST(Standin, AHostFunctionThatCallsCudaIsNamed) {
  EXPECT_EQ(complaints_of([] {
              const OnDevice device(8);
              (void)cudaLaunchHostFunc(
                  device.stream, [](void*) { (void)cudaGetLastError(), (void)cudaFree(nullptr); },
                  nullptr);
              (void)cudaStreamSynchronize(device.stream);
            }),
            Lines{"rank 0: cudaFree: called in a host function, which must not call CUDA"});
}

// A kernel that copies one byte.
void launch_copy(void* to, const void* from, cudaStream_t stream, std::size_t bytes = 1) {
  (void)standin::launch_twin(
      "copy_byte", {{from, bytes, true, false}, {to, bytes, false, true}},
      [=] { *static_cast<std::uint8_t*>(to) = *static_cast<const std::uint8_t*>(from); }, stream);
}

TEST(Standin, AKernelRunsInTheOrderOfItsStream) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(complaints_of(
                  [] {
                    const OnDevice device(2);
                    auto* bytes = static_cast<std::uint8_t*>(device.memory);
                    (void)cudaMemsetAsync(bytes, 7, 1, device.stream);
                    launch_copy(bytes + 1, bytes, device.stream);
                    device.to_host(2);
                    (void)cudaStreamSynchronize(device.stream);
                    EXPECT_EQ(static_cast<std::uint8_t*>(device.pinned)[1], 7);
                  },
                  seed),
              Lines{});
  }
}

TEST(Standin, WhatAKernelMustNotTouchIsNamed) {
  const auto complaint = [](const std::function<void(const OnDevice&, const OnDevice&)>& body) {
    const Lines lines = complaints_of([&] {
      const OnDevice first(2);
      (void)cudaSetDevice(1);
      const OnDevice second(2);
      (void)cudaMemsetAsync(first.memory, 0, 1, first.stream);
      (void)cudaStreamSynchronize(first.stream);
      body(first, second);
      (void)cudaStreamSynchronize(second.stream);
    });
    return lines.empty() ? "" : lines[0];
  };
  using Pair = const OnDevice&;
  EXPECT_EQ(complaint([](Pair, Pair d) { launch_copy(d.memory, d.memory, d.stream); }),
            "rank 0: copy_byte: reads device memory that nothing has written yet");
  EXPECT_EQ(complaint([](Pair, Pair d) { launch_copy(d.memory, d.pinned, d.stream); }),
            "rank 0: copy_byte: is given host memory");
  EXPECT_EQ(complaint([](Pair, Pair d) { launch_copy(d.memory, d.memory, d.stream, 3); }),
            "rank 0: copy_byte: reads bytes 0 to 3 of a block of 2");
  EXPECT_EQ(complaint([](Pair other, Pair d) { launch_copy(d.memory, other.memory, d.stream); }),
            "rank 0: copy_byte: reads memory of device 0 of host 0 from a stream of device 1 of "
            "host 0");
  EXPECT_EQ(
      complaint([](Pair other, Pair) { launch_copy(other.memory, other.memory, other.stream); }),
      "rank 0: copy_byte: launched on device 1 of host 0 in a stream of device 0 of host 0");
  EXPECT_EQ(complaint([](Pair, Pair d) { launch_copy(d.memory, d.memory, nullptr); }),
            "rank 0: copy_byte: uses the default stream, which waits for all others");
}

// Two streams write one place; a third byte says who came last.
int who_wrote_last(bool with_wait, std::uint64_t seed) {
  int last = 0;
  const Lines complaints = complaints_of(
      [&] {
        const OnDevice first(1);
        cudaStream_t second = nullptr;
        cudaEvent_t event = nullptr;
        (void)cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
        (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        (void)cudaMemsetAsync(first.memory, 1, 1, first.stream);
        (void)cudaEventRecord(event, first.stream);
        if (with_wait) (void)cudaStreamWaitEvent(second, event, 0);
        (void)cudaMemsetAsync(first.memory, 2, 1, second);
        (void)cudaStreamSynchronize(second);
        (void)cudaStreamSynchronize(first.stream);
        first.to_host(1);
        (void)cudaStreamSynchronize(first.stream);
        last = *static_cast<std::uint8_t*>(first.pinned);
        (void)cudaEventDestroy(event);
        (void)cudaStreamDestroy(second);
      },
      seed);
  EXPECT_EQ(complaints, Lines{});
  return last;
}

TEST(Standin, AMissingEventWaitGoesWrongUnderSomeSeed) {
  std::set<int> with_wait, without;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    with_wait.insert(who_wrote_last(true, seed));
    without.insert(who_wrote_last(false, seed));
  }
  EXPECT_EQ(with_wait, std::set{2});
  EXPECT_EQ(without, (std::set{1, 2}));
}

TEST(Standin, AHostThatDoesNotWaitReadsTooEarlyUnderSomeSeed) {
  std::set<int> seen;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    run_on_machine(1, {}, seed, [&](int) {
      const OnDevice device(1);
      auto* byte = static_cast<std::uint8_t*>(device.pinned);
      *byte = 5;
      device.to_device(1);
      *byte = 6;  // the copy may read it only now
      (void)cudaStreamSynchronize(device.stream);
      device.to_host(1);
      (void)cudaStreamSynchronize(device.stream);
      seen.insert(*byte);
    });
  }
  EXPECT_TRUE(seen.contains(6));
}

TEST(Standin, WithoutDriverOrDeviceItSaysSo) {
  int count = 7;
  run_on_machine(1, {.has_driver = false}, 1,
                 [&](int) { EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver); });
  run_on_machine(1, {.devices = 0}, 1,
                 [&](int) { EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice); });
  EXPECT_EQ(count, 0);
}

TEST(Standin, AScriptedCallFails) {
  const standin::Script script{.call = "cudaMalloc",
                               .number = 2,
                               .effect = standin::Script::Effect::kReturn,
                               .code = cudaErrorMemoryAllocation};
  run_on_machine(1, {.scripts = {script}}, 1, [](int) {
    void *first = nullptr, *second = nullptr, *third = nullptr;
    EXPECT_EQ(cudaMalloc(&first, 8), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&second, 8), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&third, 8), cudaSuccess);
    (void)cudaFree(first), (void)cudaFree(third);
  });
}

}  // namespace
}  // namespace ddproof
