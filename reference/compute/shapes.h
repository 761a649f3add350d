// The sizes of one operation. Plain values; arrays are row-major in PyTorch's layouts.
#pragma once

#include <cstdint>

#include "reference/compute/host_device.h"

namespace ddproof {

// y[batch][out] = x[batch][in] * w[out][in]^T + bias[out].
struct LinearShape {
  std::int64_t batch = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};

// A cross-correlation, as PyTorch's Conv2d: x[batch][in_channels][height][width], zero-padded on
// all four sides, w[out_channels][in_channels][kernel][kernel], y[batch][out_channels][oh][ow].
struct Conv2dShape {
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t out_channels = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  DDPROOF_HOST_DEVICE std::int64_t out_height() const { return out_size(height); }
  DDPROOF_HOST_DEVICE std::int64_t out_width() const { return out_size(width); }
  DDPROOF_HOST_DEVICE std::int64_t taps() const { return in_channels * kernel * kernel; }

 private:
  DDPROOF_HOST_DEVICE std::int64_t out_size(std::int64_t size) const {
    return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
};

// Windows of kernel x kernel, `stride` apart, without padding; a rest that fills no window is left
// out, as in PyTorch's MaxPool2d. `planes` is batch times channels.
struct Pool2dShape {
  std::int64_t planes = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;

  DDPROOF_HOST_DEVICE std::int64_t out_height() const { return (height - kernel) / stride + 1; }
  DDPROOF_HOST_DEVICE std::int64_t out_width() const { return (width - kernel) / stride + 1; }
};

// x[batch][channels][positions]: all that batch norm asks of images, and with one position of rows.
struct BatchNormShape {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t positions = 1;

  DDPROOF_HOST_DEVICE std::int64_t planes() const { return batch * channels; }
  // Values that a channel has.
  DDPROOF_HOST_DEVICE std::int64_t per_channel() const { return batch * positions; }
  DDPROOF_HOST_DEVICE std::int64_t count() const { return planes() * positions; }
};

// Images of one size made into another, plane by plane; `planes` is batch times channels.
struct BilinearShape {
  std::int64_t planes = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t out_height = 0;
  std::int64_t out_width = 0;
};

}  // namespace ddproof
