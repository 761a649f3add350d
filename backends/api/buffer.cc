#include "backends/api/buffer.h"

#include <algorithm>

#include "backends/api/error.h"

namespace ddproof {
namespace {

std::string join(std::span<const std::int64_t> values) {
  std::string text;
  for (std::int64_t value : values) {
    if (!text.empty()) text += 'x';
    text += std::to_string(value);
  }
  return text.empty() ? "scalar" : text;
}

void require_sizes(std::span<const std::int64_t> sizes) {
  if (sizes.size() > Layout::kMaxDimensions) {
    throw ConfigError("buffer layout: " + std::to_string(sizes.size()) +
                      " dimensions, at most 8 are allowed");
  }
  for (std::int64_t size : sizes) {
    if (size < 0) throw ConfigError("buffer layout " + join(sizes) + ": a size is negative");
  }
}

}  // namespace

Layout::Layout(std::int64_t count) : dimensions_(1) {
  sizes_[0] = count;
  strides_[0] = 1;
  require_sizes(sizes());
}

Layout Layout::row_major(std::span<const std::int64_t> sizes) {
  require_sizes(sizes);
  Layout layout;
  layout.dimensions_ = sizes.size();
  std::copy(sizes.begin(), sizes.end(), layout.sizes_);
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    layout.strides_[i] = stride;
    if (__builtin_mul_overflow(stride, std::max<std::int64_t>(sizes[i], 1), &stride)) {
      throw ConfigError("buffer layout " + join(sizes) + ": more than 2^63-1 elements");
    }
  }
  return layout;
}

Layout Layout::strided(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  require_sizes(sizes);
  if (sizes.size() != strides.size()) {
    throw ConfigError("buffer layout: " + std::to_string(sizes.size()) + " sizes but " +
                      std::to_string(strides.size()) + " strides");
  }
  Layout layout;
  layout.dimensions_ = sizes.size();
  std::copy(sizes.begin(), sizes.end(), layout.sizes_);
  std::copy(strides.begin(), strides.end(), layout.strides_);
  return layout;
}

std::int64_t Layout::count() const {
  std::int64_t count = dimensions_ == 0 ? 0 : 1;
  for (std::int64_t size : sizes()) {
    if (__builtin_mul_overflow(count, size, &count)) {
      throw ConfigError("buffer layout " + join(sizes()) + ": more than 2^63-1 elements");
    }
  }
  return count;
}

bool Layout::is_dense() const {
  if (count() == 0) return true;
  // From the innermost dimension outwards: one with exactly the next stride must exist.
  std::int64_t left = count();
  std::int64_t expected = 1;
  while (left > 1) {
    std::size_t d = 0;
    while (d < dimensions_ && (sizes_[d] == 1 || strides_[d] != expected)) ++d;
    if (d == dimensions_) return false;
    left /= sizes_[d];
    expected *= sizes_[d];
  }
  return true;
}

std::string Layout::describe() const {
  if (*this == row_major(sizes())) return join(sizes());
  return join(sizes()) + " strides " + join(strides());
}

bool operator==(const Layout& a, const Layout& b) {
  return std::ranges::equal(a.sizes(), b.sizes()) && std::ranges::equal(a.strides(), b.strides());
}

}  // namespace ddproof
