// Forward and backward of one layer on any device, from values that are the same in every type.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "reference/compute/device.h"
#include "tests/nccl/cuda_world.h"
#include "tests/unit/naive_layers.h"

namespace ddproof {

// Elements of one sample's input and output, and of the parameters.
struct LayerSizes {
  std::int64_t x, w, bias, y;
};
inline LayerSizes sizes_of(const LinearShape& s) { return {s.in, s.in * s.out, s.out, s.out}; }
inline LayerSizes sizes_of(const Conv2dShape& s) {
  return {s.in_channels * s.height * s.width, s.out_channels * s.taps(), s.out_channels,
          s.out_channels * s.out_height() * s.out_width()};
}

template <class T>
void forward(Device<T>& d, const LinearShape& s, const T* x, const T* w, const T* bias, T* y) {
  d.linear_forward(s, x, w, bias, y);
}
template <class T>
void forward(Device<T>& d, const Conv2dShape& s, const T* x, const T* w, const T* bias, T* y) {
  d.conv2d_forward(s, x, w, bias, y);
}
template <class T>
void backward(Device<T>& d, const LinearShape& s, const T* dy, const T* x, const T* w, T* dx, T* dw,
              T* dbias) {
  d.linear_backward_input(s, dy, w, dx);
  d.linear_backward_parameters(s, dy, x, dw, dbias);
}
template <class T>
void backward(Device<T>& d, const Conv2dShape& s, const T* dy, const T* x, const T* w, T* dx, T* dw,
              T* dbias) {
  d.conv2d_backward_input(s, dy, w, dx);
  d.conv2d_backward_parameters(s, dy, x, dw, dbias);
}

template <class T>
struct LayerResults {
  std::vector<T> y, dx, dw, dbias;
  std::vector<T> all() const {
    std::vector<T> values = y;
    for (const std::vector<T>* part : {&dx, &dw, &dbias}) {
      values.insert(values.end(), part->begin(), part->end());
    }
    return values;
  }
};

// The whole batch in pieces of `piece` samples, one after another. `absolute`: of magnitudes.
template <class T, class LayerShape>
LayerResults<T> run_layer(Device<T>& device, const LayerShape& whole, std::int64_t piece,
                          bool absolute = false) {
  const LayerSizes n = sizes_of(whole);
  std::mt19937_64 engine(7);
  const auto draw = [&](std::int64_t count) {
    std::vector<T> values = testing::random_values<T>(engine, count);
    if (absolute) values = testing::absolute(values);
    return to_device(device, values);
  };
  const Tensor<T> x = draw(whole.batch * n.x), w = draw(n.w), bias = draw(n.bias);
  const Tensor<T> dy = draw(whole.batch * n.y);
  Tensor<T> dw = draw(n.w), dbias = draw(n.bias);
  Tensor<T> y(device, {whole.batch * n.y}), dx(device, {whole.batch * n.x});
  for (std::int64_t first = 0; first < whole.batch; first += piece) {
    LayerShape s = whole;
    s.batch = std::min(piece, whole.batch - first);
    forward(device, s, x.data() + first * n.x, w.data(), bias.data(), y.data() + first * n.y);
    backward(device, s, dy.data() + first * n.y, x.data() + first * n.x, w.data(),
             dx.data() + first * n.x, dw.data(), dbias.data());
  }
  return {to_host(y), to_host(dx), to_host(dw), to_host(dbias)};
}

}  // namespace ddproof
