// Convolution on the kernels of kernels.h, one sample after another.
//
// A sample is copied once into an image with zero margins. At stride 1 the window under kernel tap
// (channel, row, column) is then the image itself, shifted by a constant: tap t of output position
// p lies at tap_offset[t] + p, with one image row as the pitch of p. So the taps are the depth of a
// product whose B is the image, and nothing is unrolled into columns. The few positions between the
// rows' ends are computed and dropped.
#pragma once

#include <algorithm>

#include "reference/compute/aligned_memory.h"
#include "reference/compute/kernels.h"
#include "reference/compute/pack.h"
#include "reference/compute/scalar.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

// Planes of `height` x `width` elements, `step` apart in the image, with a margin of zeros above
// and left. The margin left of a row also serves as the one right of the row before.
struct Image {
  std::int64_t planes = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t step = 1;
  std::int64_t margin = 0;
  std::int64_t pitch = 0;  // from row to row
  std::int64_t rows = 0;   // of one plane, margins included

  std::int64_t plane() const { return rows * pitch; }
  // With room behind it for the last row's right margin and for reading whole panels.
  std::int64_t count(std::int64_t panel) const { return planes * plane() + pitch + margin + panel; }
};

template <class T>
void copy_to_image(const Image& image, std::int64_t panel, const T* from, T* to) {
  std::fill_n(to, image.count(panel), T{});
  for (std::int64_t p = 0; p < image.planes; ++p) {
    for (std::int64_t r = 0; r < image.height; ++r) {
      T* row =
          to + p * image.plane() + (image.margin + r * image.step) * image.pitch + image.margin;
      if (image.step == 1) {
        std::copy_n(from, image.width, row);
      } else {
        for (std::int64_t c = 0; c < image.width; ++c) row[c * image.step] = from[c];
      }
      from += image.width;
    }
  }
}

// The input as forward reads it.
inline Image input_image(const Conv2dShape& s) {
  return {.planes = s.in_channels,
          .height = s.height,
          .width = s.width,
          .margin = s.padding,
          .pitch = std::max(s.width + s.padding, s.out_width()),
          .rows = s.height + 2 * s.padding};
}

// The output's gradient as the input's gradient reads it: with its strides filled up by zeros, a
// convolution of stride 1 again.
inline Image gradient_image(const Conv2dShape& s) {
  const std::int64_t margin = std::max<std::int64_t>(0, s.dilation * (s.kernel - 1) - s.padding);
  const std::int64_t extent = (s.out_width() - 1) * s.stride + 1;
  return {.planes = s.out_channels,
          .height = s.out_height(),
          .width = s.out_width(),
          .step = s.stride,
          .margin = margin,
          .pitch = std::max(s.width + s.padding, extent + margin),
          .rows = margin + std::max(s.height + s.padding, (s.out_height() - 1) * s.stride + 1)};
}

// Offsets of the taps (channel, row, column) ascending: from the window's first element, `sign` 1,
// or backwards from `origin`, sign -1.
inline void fill_tap_offsets(std::vector<std::int64_t>& table, const Conv2dShape& s,
                             const Image& image, std::int64_t origin, std::int64_t sign) {
  table.clear();
  for (std::int64_t channel = 0; channel < image.planes; ++channel) {
    for (std::int64_t r = 0; r < s.kernel; ++r) {
      for (std::int64_t c = 0; c < s.kernel; ++c) {
        table.push_back(channel * image.plane() + (origin + sign * r * s.dilation) * image.pitch +
                        origin + sign * c * s.dilation);
      }
    }
  }
}

inline void fill_position_offsets(std::vector<std::int64_t>& table, const Conv2dShape& s,
                                  const Image& image) {
  table.clear();
  for (std::int64_t r = 0; r < s.out_height(); ++r) {
    for (std::int64_t c = 0; c < s.out_width(); ++c) {
      table.push_back((r * image.pitch + c) * s.stride);
    }
  }
}

// to[channel][height][width] = from[channel][..], rows `pitch` apart.
template <class T>
void copy_rows(const T* from, std::int64_t channels, std::int64_t channel_stride,
               std::int64_t height, std::int64_t width, std::int64_t pitch, T* to) {
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t r = 0; r < height; ++r, to += width) {
      std::copy_n(from + channel * channel_stride + r * pitch, width, to);
    }
  }
}

// columns[tap][position]: the windows of one image, for strides other than 1.
template <class T>
void unroll(const T* image, const std::vector<std::int64_t>& taps,
            const std::vector<std::int64_t>& positions, std::int64_t row, T* columns) {
  for (std::int64_t tap : taps) {
    for (std::size_t p = 0; p < positions.size(); ++p) columns[p] = image[tap + positions[p]];
    columns += row;
  }
}

template <class T>
void conv2d_forward(const Kernels<T>& kernels, Workspace<T>& work, const Conv2dShape& s, const T* x,
                    const T* w, const T* bias, T* y) {
  const std::int64_t panel = kernels.panel_columns;
  const Image image = input_image(s);
  const bool unrolled = s.stride != 1;
  const std::int64_t pitch = unrolled ? s.out_width() : image.pitch;
  const std::int64_t positions = (s.out_height() - 1) * pitch + s.out_width();
  const std::int64_t row = round_up(positions, panel);
  T* pixels = work.a.reserve(image.count(panel));
  T* columns = work.b.reserve(unrolled ? s.taps() * row : 0);
  T* result = work.c.reserve(s.out_channels * row);
  fill_offsets(work.a_row, s.out_channels, s.taps());
  fill_offsets(work.a_depth, s.taps(), 1);
  fill_tap_offsets(work.taps, s, image, 0, 1);
  fill_position_offsets(work.positions, s, image);
  fill_offsets(work.b_depth, s.taps(), row);
  for (std::int64_t n = 0; n < s.batch; ++n) {
    copy_to_image(image, panel, x, pixels);
    if (unrolled) unroll(pixels, work.taps, work.positions, row, columns);
    kernels.multiply({.rows = s.out_channels,
                      .depth = s.taps(),
                      .columns = positions,
                      .a = w,
                      .a_row = work.a_row.data(),
                      .a_depth = work.a_depth.data(),
                      .b = unrolled ? columns : pixels,
                      .b_depth = unrolled ? work.b_depth.data() : work.taps.data(),
                      .b_panel = panel,
                      .c = result,
                      .c_row = row,
                      .c_panel = panel,
                      .start = bias != nullptr ? Start::kRowBias : Start::kZero,
                      .bias = bias});
    copy_rows(result, s.out_channels, row, s.out_height(), s.out_width(), pitch, y);
    x += s.in_channels * s.height * s.width;
    y += s.out_channels * s.out_height() * s.out_width();
  }
}

template <class T>
void conv2d_backward_input(const Kernels<T>& kernels, Workspace<T>& work, const Conv2dShape& s,
                           const T* dy, const T* w, T* dx) {
  const std::int64_t panel = kernels.panel_columns;
  const std::int64_t taps = s.kernel * s.kernel;
  const Image image = gradient_image(s);
  const std::int64_t positions = (s.height - 1) * image.pitch + s.width;
  const std::int64_t row = round_up(positions, panel);
  T* pixels = work.a.reserve(image.count(panel));
  T* result = work.c.reserve(s.in_channels * row);
  fill_offsets(work.a_row, s.in_channels, taps);
  work.a_depth.clear();
  for (std::int64_t channel = 0; channel < s.out_channels; ++channel) {
    for (std::int64_t t = 0; t < taps; ++t) work.a_depth.push_back(channel * s.taps() + t);
  }
  fill_tap_offsets(work.taps, s, image, image.margin + s.padding, -1);
  for (std::int64_t n = 0; n < s.batch; ++n) {
    copy_to_image(image, panel, dy, pixels);
    kernels.multiply({.rows = s.in_channels,
                      .depth = s.out_channels * taps,
                      .columns = positions,
                      .a = w,
                      .a_row = work.a_row.data(),
                      .a_depth = work.a_depth.data(),
                      .b = pixels,
                      .b_depth = work.taps.data(),
                      .b_panel = panel,
                      .c = result,
                      .c_row = row,
                      .c_panel = panel,
                      .start = Start::kZero});
    copy_rows(result, s.in_channels, row, s.height, s.width, image.pitch, dx);
    dy += s.out_channels * s.out_height() * s.out_width();
    dx += s.in_channels * s.height * s.width;
  }
}

// Vectors over output channels: dy and dw are transposed on the way in, dw on the way out.
template <class T>
void conv2d_backward_parameters(const Kernels<T>& kernels, Workspace<T>& work, const Conv2dShape& s,
                                const T* dy, const T* x, T* dw, T* dbias) {
  const std::int64_t panel = kernels.panel_columns;
  const std::int64_t channels = round_up(s.out_channels, panel);
  const std::int64_t positions = s.out_height() * s.out_width();
  const Image image = input_image(s);
  T* pixels = work.a.reserve(image.count(panel));
  T* dy_panels = work.b.reserve(channels * positions);
  T* dw_panels = work.c.reserve(channels * s.taps());
  fill_tap_offsets(work.taps, s, image, 0, 1);
  fill_position_offsets(work.positions, s, image);
  fill_offsets(work.b_depth, positions, panel);
  const std::vector<std::int64_t> zeros(static_cast<std::size_t>(positions), 0);
  const T one = from_integer<T>(1);
  pack_transposed(dw, s.taps(), s.out_channels, s.taps(), dw_panels, panel);
  for (std::int64_t n = 0; n < s.batch; ++n) {
    copy_to_image(image, panel, x, pixels);
    pack_transposed(dy, positions, s.out_channels, positions, dy_panels, panel);
    Product<T> product = {.rows = s.taps(),
                          .depth = positions,
                          .columns = s.out_channels,
                          .a = pixels,
                          .a_row = work.taps.data(),
                          .a_depth = work.positions.data(),
                          .b = dy_panels,
                          .b_depth = work.b_depth.data(),
                          .b_panel = positions * panel,
                          .c = dw_panels,
                          .c_row = panel,
                          .c_panel = s.taps() * panel,
                          .start = Start::kContinue};
    kernels.multiply(product);
    if (dbias != nullptr) {
      // The bias is one more tap, which always sees a 1: exact.
      product.rows = 1;
      product.a = &one;
      product.a_row = product.a_depth = zeros.data();
      product.c = dbias;
      product.c_panel = panel;
      kernels.multiply(product);
    }
    dy += s.out_channels * positions;
    x += s.in_channels * s.height * s.width;
  }
  unpack_transposed(dw_panels, s.out_channels, s.taps(), panel, dw, s.taps());
}

}  // namespace ddproof::internal
