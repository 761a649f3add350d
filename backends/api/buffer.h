// A borrowed block of elements with its layout: what a collective reads or writes.
//
// Invariants: count() is the product of sizes(); data() may be null only when count() is 0;
// stream() is null for memory of the host. For memory of a device it is the queue (a cudaStream_t)
// whose work makes and uses the elements.
// The memory belongs to the caller and must stay valid, and be left alone, until the Work of the
// call is done. Values; a Buffer may be copied between threads.
// A call on device memory takes the data as they are once that is done which is in the stream at
// the time of the call; work.h says how the result comes back to the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>

#include "backends/api/element.h"

namespace ddproof {

// Sizes and strides in elements, at most kMaxDimensions of them.
class Layout {
 public:
  static constexpr std::size_t kMaxDimensions = 8;

  Layout() = default;
  // One dimension, dense.
  explicit Layout(std::int64_t count);
  // Row-major. Throws ConfigError on a negative size or too many dimensions.
  static Layout row_major(std::span<const std::int64_t> sizes);
  // As given. Throws ConfigError also when the two lengths differ.
  static Layout strided(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);

  std::span<const std::int64_t> sizes() const { return {sizes_, dimensions_}; }
  std::span<const std::int64_t> strides() const { return {strides_, dimensions_}; }
  // Product of the sizes. Throws ConfigError when it does not fit 63 bits.
  std::int64_t count() const;
  // True when the elements fill count() places without holes or overlap, in any dimension order.
  bool is_dense() const;
  // "3x2" or "3x2 strides 1x3" when not row-major.
  std::string describe() const;

  friend bool operator==(const Layout& a, const Layout& b);

 private:
  std::int64_t sizes_[kMaxDimensions] = {};
  std::int64_t strides_[kMaxDimensions] = {};
  std::size_t dimensions_ = 0;
};

template <class Pointer>
class BasicBuffer {
 public:
  BasicBuffer() = default;
  BasicBuffer(Pointer data, ElementType type, Layout layout, void* stream = nullptr)
      : data_(data), type_(type), layout_(layout), count_(layout.count()), stream_(stream) {}

  // Dense, one dimension: the elements of a vector, an array or a span.
  template <std::ranges::contiguous_range Range>
  static BasicBuffer of(Range&& elements) {
    return BasicBuffer(std::ranges::data(elements), element_of<std::ranges::range_value_t<Range>>(),
                       Layout(static_cast<std::int64_t>(std::ranges::size(elements))));
  }

  // A Buffer may stand wherever it is only read.
  template <class Other>
  requires std::is_convertible_v<Other, Pointer> BasicBuffer(
      const BasicBuffer<Other>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data()),
        type_(other.type()),
        layout_(other.layout()),
        count_(other.count()),
        stream_(other.stream()) {}

  Pointer data() const { return data_; }
  ElementType type() const { return type_; }
  const Layout& layout() const { return layout_; }
  std::int64_t count() const { return count_; }
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * type_.size(); }
  void* stream() const { return stream_; }

 private:
  Pointer data_ = nullptr;
  ElementType type_;
  Layout layout_;
  std::int64_t count_ = 0;
  void* stream_ = nullptr;
};

using Buffer = BasicBuffer<void*>;
using ConstBuffer = BasicBuffer<const void*>;

}  // namespace ddproof
