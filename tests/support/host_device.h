// The smallest Device: host memory, for tests that need tensors but no operations.
#pragma once

#include <algorithm>
#include <new>

#include "reference/compute/device.h"

namespace ddproof {

template <class T>
class HostDevice final : public Device<T> {
 public:
  std::string_view name() const override { return "host"; }
  T* allocate(std::int64_t count) override {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
    T* data = static_cast<T*>(::operator new (bytes, std::align_val_t{64}));
    std::fill_n(data, count, T{});
    return data;
  }
  void deallocate(T* data) override { ::operator delete (data, std::align_val_t{64}); }
  void fill(T* data, std::int64_t count, T value) override { std::fill_n(data, count, value); }
  void scaled_copy(T* to, const T* from, T factor, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * factor;
  }
  void copy_to_host(T* host, const T* device, std::int64_t count) override {
    std::copy_n(device, count, host);
  }
  void copy_from_host(T* device, const T* host, std::int64_t count) override {
    std::copy_n(host, count, device);
  }
  void copy(T* to, const T* from, std::int64_t count) override { std::copy_n(from, count, to); }
};

}  // namespace ddproof
