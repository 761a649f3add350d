// A dense row-major array on a device: owned, or a view of memory that somebody else owns.
//
// Invariants: count() is the product of shape(); the elements are contiguous.
// Move-only. Threads: one task at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backends/api/buffer.h"
#include "backends/api/check.h"
#include "reference/compute/device.h"

namespace ddproof {

using Shape = std::vector<std::int64_t>;

inline std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  return count;
}

template <class T>
class Tensor {
 public:
  Tensor() = default;
  // Zero-filled. Requires: sizes >= 0; `device` outlives the tensor.
  Tensor(Device<T>& device, Shape shape)
      : device_(&device), shape_(std::move(shape)), count_(element_count(shape_)) {
    DDPROOF_CHECK(count_ >= 0);
    data_ = device.allocate(count_);
    owned_ = true;
  }
  // A view. Requires: `data` holds element_count(shape) elements and outlives the tensor.
  static Tensor view(Device<T>& device, T* data, Shape shape) {
    Tensor tensor;
    tensor.device_ = &device;
    tensor.count_ = element_count(shape);
    tensor.shape_ = std::move(shape);
    tensor.data_ = data;
    return tensor;
  }
  ~Tensor() {
    if (owned_) device_->deallocate(data_);
  }
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    swap(other);
    return *this;
  }

  Device<T>& device() const { return *device_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size(std::size_t dimension) const { return shape_[dimension]; }
  std::int64_t count() const { return count_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  // For a collective.
  Buffer buffer() {
    return Buffer(data_, element_of<T>(), Layout::row_major(shape_), device_->stream());
  }
  // Host access; only where the device's memory is the host's.
  std::span<T> span() { return {data_, static_cast<std::size_t>(count_)}; }
  std::span<const T> span() const { return {data_, static_cast<std::size_t>(count_)}; }

 private:
  void swap(Tensor& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(shape_, other.shape_);
    std::swap(count_, other.count_);
    std::swap(data_, other.data_);
    std::swap(owned_, other.owned_);
  }

  Device<T>* device_ = nullptr;
  Shape shape_;
  std::int64_t count_ = 0;
  T* data_ = nullptr;
  bool owned_ = false;
};

// A copy of the elements. Waits for the device.
template <class T>
std::vector<T> to_host(const Tensor<T>& tensor) {
  std::vector<T> host(static_cast<std::size_t>(tensor.count()));
  if (!host.empty()) tensor.device().copy_to_host(host.data(), tensor.data(), tensor.count());
  return host;
}

}  // namespace ddproof
