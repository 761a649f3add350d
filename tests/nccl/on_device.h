// Arrays in device memory, and what a test does with them in a stream.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backends/api/buffer.h"

namespace ddproof {

// Made on the calling thread's device.
class TestStream {
 public:
  TestStream() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  ~TestStream() {
    for (void* each : pinned_) (void)cudaFreeHost(each);
    (void)cudaStreamDestroy(stream_);
  }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  cudaStream_t get() const { return stream_; }
  // Lives as long as the stream: freeing it waits for all that runs on the device.
  void* pinned(std::size_t bytes) const {
    void* data = nullptr;
    EXPECT_EQ(cudaMallocHost(&data, bytes), cudaSuccess);
    return pinned_.emplace_back(data);
  }
  cudaError_t synchronize() const { return cudaStreamSynchronize(stream_); }

 private:
  cudaStream_t stream_ = nullptr;
  mutable std::vector<void*> pinned_;
};

// Values that are brought to the device in the stream, without waiting for it.
template <class T>
class OnDevice {
 public:
  OnDevice(const TestStream& stream, const std::vector<T>& values)
      : stream_(stream.get()), count_(values.size()) {
    if (bytes() == 0) return;
    pinned_ = stream.pinned(bytes());
    EXPECT_EQ(cudaMallocAsync(&data_, bytes(), stream_), cudaSuccess);
    fill(values);
  }
  ~OnDevice() {
    if (bytes() > 0) (void)cudaFreeAsync(data_, stream_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  Buffer buffer() const { return on(stream_); }
  // As if another stream used it.
  Buffer on(cudaStream_t stream) const {
    return {data_, element_of<T>(), Layout(static_cast<std::int64_t>(count_)), stream};
  }
  void* data() const { return data_; }
  cudaStream_t stream() const { return stream_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

  // Once the stream has come there.
  void fill(const std::vector<T>& values) {
    std::copy(values.begin(), values.end(), static_cast<T*>(pinned_));
    (void)cudaMemcpyAsync(data_, pinned_, bytes(), cudaMemcpyHostToDevice, stream_);
  }
  // Waits for the stream.
  std::vector<T> values() const {
    std::vector<T> result(count_);
    if (bytes() == 0) return result;
    (void)cudaMemcpyAsync(pinned_, data_, bytes(), cudaMemcpyDeviceToHost, stream_);
    (void)cudaStreamSynchronize(stream_);
    std::copy_n(static_cast<const T*>(pinned_), count_, result.begin());
    return result;
  }

 private:
  cudaStream_t stream_;
  std::size_t count_;
  void* data_ = nullptr;
  void* pinned_ = nullptr;
};

}  // namespace ddproof
