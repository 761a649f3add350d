// Memory on cache-line boundaries, for vector loads that cross no line.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace ddproof::internal {

inline constexpr std::align_val_t kCacheLine{64};

// Value-initialised, that is zero for arithmetic types. Never null. Release with release_aligned.
template <class T>
T* allocate_aligned(std::int64_t count) {
  static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
  const auto size = static_cast<std::size_t>(count);
  T* data = static_cast<T*>(::operator new(size * sizeof(T), kCacheLine));
  std::uninitialized_value_construct_n(data, size);
  return data;
}

template <class T>
void release_aligned(T* data) {
  ::operator delete(data, kCacheLine);
}

// Working memory that grows on demand and keeps its size from call to call.
template <class T>
class WorkBuffer {
 public:
  WorkBuffer() = default;
  ~WorkBuffer() { release_aligned(data_); }
  WorkBuffer(const WorkBuffer&) = delete;
  WorkBuffer& operator=(const WorkBuffer&) = delete;

  // Room for `count` elements with unspecified values; valid until the next call.
  T* reserve(std::int64_t count) {
    if (count > count_) {
      release_aligned(std::exchange(data_, nullptr));
      count_ = 0;
      data_ = allocate_aligned<T>(count);
      count_ = count;
    }
    return data_;
  }

 private:
  T* data_ = nullptr;
  std::int64_t count_ = 0;
};

// What one Cpu keeps between calls: packed operands, a result tile, and offset tables.
template <class T>
struct Workspace {
  WorkBuffer<T> a, b, c;
  std::vector<std::int64_t> a_row, a_depth, b_depth, taps, positions;
};

}  // namespace ddproof::internal
