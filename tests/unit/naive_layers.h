// Plain loops for the layers, written from their definition alone: what the kernels must equal.
//
// In T, each element is the chain that device.h promises, so results must agree bit for bit. In a
// wider type they are the reference for the rounding bound (ORACLES: dot product of length n); with
// absolute values they are the bound's sum.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "reference/compute/shapes.h"

namespace ddproof::testing {

using Index = std::int64_t;

template <class T>
using Values = std::vector<T>;

template <class T>
const T& at(const Values<T>& values, Index index) {
  return values[static_cast<std::size_t>(index)];
}
template <class T>
T& at(Values<T>& values, Index index) {
  return values[static_cast<std::size_t>(index)];
}

template <class To, class From>
Values<To> converted(const Values<From>& values) {
  return Values<To>(values.begin(), values.end());
}

template <class T>
Values<T> absolute(const Values<T>& values) {
  Values<T> result = values;
  for (T& value : result) value = std::fabs(value);
  return result;
}

// Multiples of 2^-20 in [-1, 1): every bit pattern is reached through one fixed engine.
template <class T>
Values<T> random_values(std::mt19937_64& engine, Index count) {
  Values<T> values(static_cast<std::size_t>(count));
  for (T& value : values) {
    value = static_cast<T>(static_cast<std::int64_t>(engine() >> 43) - (1 << 20)) * T(0x1p-20);
  }
  return values;
}

// Small integers: sums of thousands of their products are exact in float.
template <class T>
Values<T> random_integers(std::mt19937_64& engine, Index count) {
  Values<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(static_cast<int>(engine() % 9) - 4);
  return values;
}

template <class T>
Values<T> naive_linear_forward(const LinearShape& s, const Values<T>& x, const Values<T>& w,
                               const Values<T>& bias) {
  Values<T> y;
  for (Index n = 0; n < s.batch; ++n) {
    for (Index o = 0; o < s.out; ++o) {
      T sum = at(bias, o);
      for (Index i = 0; i < s.in; ++i) {
        sum = std::fma(at(w, o * s.in + i), at(x, n * s.in + i), sum);
      }
      y.push_back(sum);
    }
  }
  return y;
}

template <class T>
Values<T> naive_linear_input(const LinearShape& s, const Values<T>& dy, const Values<T>& w) {
  Values<T> dx;
  for (Index n = 0; n < s.batch; ++n) {
    for (Index i = 0; i < s.in; ++i) {
      T sum{};
      for (Index o = 0; o < s.out; ++o) {
        sum = std::fma(at(dy, n * s.out + o), at(w, o * s.in + i), sum);
      }
      dx.push_back(sum);
    }
  }
  return dx;
}

template <class T>
void naive_linear_parameters(const LinearShape& s, const Values<T>& dy, const Values<T>& x,
                             Values<T>& dw, Values<T>& dbias) {
  for (Index n = 0; n < s.batch; ++n) {
    for (Index o = 0; o < s.out; ++o) {
      at(dbias, o) += at(dy, n * s.out + o);
      for (Index i = 0; i < s.in; ++i) {
        T& sum = at(dw, o * s.in + i);
        sum = std::fma(at(dy, n * s.out + o), at(x, n * s.in + i), sum);
      }
    }
  }
}

// The input element under a kernel tap at an output position; zero in the padding.
template <class T>
T input_under(const Conv2dShape& s, const Values<T>& x, Index n, Index channel, Index row,
              Index column) {
  if (row < 0 || row >= s.height || column < 0 || column >= s.width) return T{};
  return at(x, ((n * s.in_channels + channel) * s.height + row) * s.width + column);
}

template <class T, class Body>  // body(n, oc, oh, ow, ic, kh, kw)
void for_each_tap(const Conv2dShape& s, Index n, Index oc, Index oh, Index ow, Body body) {
  for (Index ic = 0; ic < s.in_channels; ++ic) {
    for (Index kh = 0; kh < s.kernel; ++kh) {
      for (Index kw = 0; kw < s.kernel; ++kw) {
        body(((oc * s.in_channels + ic) * s.kernel + kh) * s.kernel + kw, n, ic,
             oh * s.stride - s.padding + kh * s.dilation,
             ow * s.stride - s.padding + kw * s.dilation);
      }
    }
  }
}

template <class T>
Values<T> naive_conv2d_forward(const Conv2dShape& s, const Values<T>& x, const Values<T>& w,
                               const Values<T>& bias) {
  Values<T> y;
  for (Index n = 0; n < s.batch; ++n) {
    for (Index oc = 0; oc < s.out_channels; ++oc) {
      for (Index oh = 0; oh < s.out_height(); ++oh) {
        for (Index ow = 0; ow < s.out_width(); ++ow) {
          T sum = at(bias, oc);
          for_each_tap<T>(s, n, oc, oh, ow,
                          [&](Index tap, Index sample, Index ic, Index r, Index c) {
                            sum = std::fma(at(w, tap), input_under(s, x, sample, ic, r, c), sum);
                          });
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

// dy at the output position whose tap (kh, kw) lies on the input position; zero where there is
// none.
template <class T>
T gradient_under(const Conv2dShape& s, const Values<T>& dy, Index n, Index oc, Index row,
                 Index column) {
  if (row < 0 || column < 0 || row % s.stride != 0 || column % s.stride != 0) return T{};
  row /= s.stride;
  column /= s.stride;
  if (row >= s.out_height() || column >= s.out_width()) return T{};
  return at(dy, ((n * s.out_channels + oc) * s.out_height() + row) * s.out_width() + column);
}

template <class T>
T naive_conv2d_input_element(const Conv2dShape& s, const Values<T>& dy, const Values<T>& w, Index n,
                             Index ic, Index ih, Index iw) {
  T sum{};
  for (Index oc = 0; oc < s.out_channels; ++oc) {
    for (Index kh = 0; kh < s.kernel; ++kh) {
      for (Index kw = 0; kw < s.kernel; ++kw) {
        const T gradient = gradient_under(s, dy, n, oc, ih + s.padding - kh * s.dilation,
                                          iw + s.padding - kw * s.dilation);
        const Index tap = ((oc * s.in_channels + ic) * s.kernel + kh) * s.kernel + kw;
        sum = std::fma(at(w, tap), gradient, sum);
      }
    }
  }
  return sum;
}

template <class T>
Values<T> naive_conv2d_input(const Conv2dShape& s, const Values<T>& dy, const Values<T>& w) {
  Values<T> dx;
  for (Index n = 0; n < s.batch; ++n) {
    for (Index ic = 0; ic < s.in_channels; ++ic) {
      for (Index ih = 0; ih < s.height; ++ih) {
        for (Index iw = 0; iw < s.width; ++iw) {
          dx.push_back(naive_conv2d_input_element(s, dy, w, n, ic, ih, iw));
        }
      }
    }
  }
  return dx;
}

template <class T>
void naive_conv2d_parameters(const Conv2dShape& s, const Values<T>& dy, const Values<T>& x,
                             Values<T>& dw, Values<T>& dbias) {
  Index position = 0;
  for (Index n = 0; n < s.batch; ++n) {
    for (Index oc = 0; oc < s.out_channels; ++oc) {
      for (Index oh = 0; oh < s.out_height(); ++oh) {
        for (Index ow = 0; ow < s.out_width(); ++ow, ++position) {
          at(dbias, oc) += at(dy, position);
          for_each_tap<T>(
              s, n, oc, oh, ow, [&](Index tap, Index sample, Index ic, Index r, Index c) {
                at(dw, tap) =
                    std::fma(at(dy, position), input_under(s, x, sample, ic, r, c), at(dw, tap));
              });
        }
      }
    }
  }
}

}  // namespace ddproof::testing
