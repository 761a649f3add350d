// Rearranging matrices into the panels that the kernels read. Copies only: no arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ddproof::internal {

inline std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// table[i] = i * step for i < count.
inline void fill_offsets(std::vector<std::int64_t>& table, std::int64_t count, std::int64_t step) {
  table.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) table[static_cast<std::size_t>(i)] = i * step;
}

// to[c][r] = from[r][c], in blocks that stay in the first-level cache.
template <class T>
void transpose(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               T* to, std::int64_t to_stride) {
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const std::int64_t r1 = std::min(rows, r0 + kBlock);
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = r0; r < r1; ++r) to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
}

// Columns [0, columns) of from[rows][..] as one panel to[rows][panel]; the rest is zero.
template <class T>
void pack_panel(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
                T* to, std::int64_t panel) {
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(from + r * from_stride, columns, to + r * panel);
    std::fill(to + r * panel + columns, to + (r + 1) * panel, T{});
  }
}

// The transpose of from[rows][depth] as panels to[row / panel][depth][panel], padded with zeros.
template <class T>
void pack_transposed(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t depth,
                     T* to, std::int64_t panel) {
  for (std::int64_t r = 0; r < rows; r += panel, to += depth * panel) {
    const std::int64_t count = std::min(panel, rows - r);
    transpose(from + r * from_stride, from_stride, count, depth, to, panel);
    if (count == panel) continue;
    for (std::int64_t k = 0; k < depth; ++k) {
      std::fill(to + k * panel + count, to + (k + 1) * panel, T{});
    }
  }
}

// The inverse: to[r][k] = from[r / panel][k][r % panel].
template <class T>
void unpack_transposed(const T* from, std::int64_t rows, std::int64_t depth, std::int64_t panel,
                       T* to, std::int64_t to_stride) {
  for (std::int64_t r = 0; r < rows; r += panel, from += depth * panel) {
    transpose(from, panel, depth, std::min(panel, rows - r), to + r * to_stride, to_stride);
  }
}

}  // namespace ddproof::internal
