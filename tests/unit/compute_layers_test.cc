// Linear and convolution kernels: the same bits as a plain loop on every instruction set, and
// within the rounding bound of the exact result.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "tests/unit/naive_layers.h"

namespace ddproof::testing {
namespace {

// What one operation computes from generated data, in the kernels and in plain loops.
template <class T>
struct Results {
  Values<T> forward, input, weight, bias;
  bool operator==(const Results&) const = default;
};

template <class T, class Shape>
struct LayerData {
  Shape shape;
  Values<T> x, w, bias, dy, dw, dbias;
};
template <class T>
using LinearData = LayerData<T, LinearShape>;
template <class T>
using ConvData = LayerData<T, Conv2dShape>;

using Draw = Values<double> (*)(std::mt19937_64&, Index);

// `x`, `w`, `bias` and `y`: how many elements these have.
template <class T, class Shape>
LayerData<T, Shape> draw_data(const Shape& shape, std::uint64_t seed, Draw draw, Index x, Index w,
                              Index bias, Index y) {
  std::mt19937_64 engine(seed);
  const auto values = [&](Index count) { return converted<T>(draw(engine, count)); };
  return {shape, values(x), values(w), values(bias), values(y), values(w), values(bias)};
}

template <class T>
LinearData<T> layer_data(const LinearShape& s, std::uint64_t seed, Draw draw) {
  return draw_data<T>(s, seed, draw, s.batch * s.in, s.out * s.in, s.out, s.batch * s.out);
}

template <class T>
ConvData<T> layer_data(const Conv2dShape& s, std::uint64_t seed, Draw draw) {
  return draw_data<T>(s, seed, draw, s.batch * s.in_channels * s.height * s.width,
                      s.out_channels * s.taps(), s.out_channels,
                      s.batch * s.out_channels * s.out_height() * s.out_width());
}

template <class T>
Results<T> by_device(Device<T>& device, const LinearData<T>& d) {
  Results<T> r{Values<T>(d.dy.size()), Values<T>(d.x.size()), d.dw, d.dbias};
  device.linear_forward(d.shape, d.x.data(), d.w.data(), d.bias.data(), r.forward.data());
  device.linear_backward_input(d.shape, d.dy.data(), d.w.data(), r.input.data());
  device.linear_backward_parameters(d.shape, d.dy.data(), d.x.data(), r.weight.data(),
                                    r.bias.data());
  return r;
}

template <class T>
Results<T> by_device(Device<T>& device, const ConvData<T>& d) {
  Results<T> r{Values<T>(d.dy.size()), Values<T>(d.x.size()), d.dw, d.dbias};
  device.conv2d_forward(d.shape, d.x.data(), d.w.data(), d.bias.data(), r.forward.data());
  device.conv2d_backward_input(d.shape, d.dy.data(), d.w.data(), r.input.data());
  device.conv2d_backward_parameters(d.shape, d.dy.data(), d.x.data(), r.weight.data(),
                                    r.bias.data());
  return r;
}

template <class T>
Results<T> by_loops(const LinearData<T>& d) {
  Results<T> r{naive_linear_forward(d.shape, d.x, d.w, d.bias),
               naive_linear_input(d.shape, d.dy, d.w), d.dw, d.dbias};
  naive_linear_parameters(d.shape, d.dy, d.x, r.weight, r.bias);
  return r;
}

template <class T>
Results<T> by_loops(const ConvData<T>& d) {
  Results<T> r{naive_conv2d_forward(d.shape, d.x, d.w, d.bias),
               naive_conv2d_input(d.shape, d.dy, d.w), d.dw, d.dbias};
  naive_conv2d_parameters(d.shape, d.dy, d.x, r.weight, r.bias);
  return r;
}

template <class T>
void expect_equal(const Results<T>& actual, const Results<T>& expected, std::string_view where) {
  EXPECT_EQ(actual.forward, expected.forward) << where;
  EXPECT_EQ(actual.input, expected.input) << where;
  EXPECT_EQ(actual.weight, expected.weight) << where;
  EXPECT_EQ(actual.bias, expected.bias) << where;
}

template <class T, class Shape>
void expect_bits_of_loops_everywhere(const Shape& shape, std::uint64_t seed) {
  const LayerData<T, Shape> data = layer_data<T>(shape, seed, random_values<double>);
  for (Isa isa : supported_isas()) {
    Cpu<T> cpu(isa);
    expect_equal(by_device<T>(cpu, data), by_loops(data), to_string(isa));
  }
}

// |fl(s) - s| <= gamma_n sum|x_i y_i| + n 2^-150 for the float chain, plus the double reference's
// own gamma_n. n counts the terms, the start included.
void expect_within_bound(const Values<float>& actual, const Values<double>& exact,
                         const Values<double>& magnitude, Index terms, const char* what) {
  ASSERT_EQ(actual.size(), exact.size());
  const auto n = static_cast<double>(terms);
  const auto gamma = [n](double u) { return n * u / (1 - n * u); };
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double bound = (gamma(0x1p-24) + gamma(0x1p-53)) * magnitude[i] + n * 0x1p-150;
    ASSERT_LE(std::fabs(static_cast<double>(actual[i]) - exact[i]), bound) << what << " " << i;
  }
}

template <class Data>
Data magnitudes(const Data& d) {
  return {d.shape,        absolute(d.x),  absolute(d.w),    absolute(d.bias),
          absolute(d.dy), absolute(d.dw), absolute(d.dbias)};
}

template <class Shape>
LayerData<double, Shape> widened(const LayerData<float, Shape>& d) {
  return {d.shape,
          converted<double>(d.x),
          converted<double>(d.w),
          converted<double>(d.bias),
          converted<double>(d.dy),
          converted<double>(d.dw),
          converted<double>(d.dbias)};
}

Results<double> widened(const Results<float>& r) {
  return {converted<double>(r.forward), converted<double>(r.input), converted<double>(r.weight),
          converted<double>(r.bias)};
}

template <class Shape>
void expect_results_within_bound(const Shape& shape, std::uint64_t seed, Index forward_terms,
                                 Index input_terms, Index parameter_terms) {
  const auto data = layer_data<float>(shape, seed, random_values<double>);
  Cpu<float> cpu;
  const Results<float> actual = by_device<float>(cpu, data);
  const Results<double> exact = by_loops(widened(data));
  const Results<double> magnitude = by_loops(magnitudes(widened(data)));
  expect_within_bound(actual.forward, exact.forward, magnitude.forward, forward_terms, "forward");
  expect_within_bound(actual.input, exact.input, magnitude.input, input_terms, "input");
  expect_within_bound(actual.weight, exact.weight, magnitude.weight, parameter_terms, "weight");
  expect_within_bound(actual.bias, exact.bias, magnitude.bias, parameter_terms, "bias");
}

template <class Shape>
void expect_exact_on_integers(const Shape& shape, std::uint64_t seed) {
  const auto data = layer_data<float>(shape, seed, random_integers<double>);
  Cpu<float> cpu;
  expect_equal(widened(by_device<float>(cpu, data)), by_loops(widened(data)), "on integers");
}

template <class Shape>
void expect_nothing_from_an_empty_batch(const Shape& shape, std::uint64_t seed) {
  const auto data = layer_data<float>(shape, seed, random_values<double>);
  Cpu<float> cpu;
  expect_equal(by_device<float>(cpu, data), {{}, {}, data.dw, data.dbias}, "empty batch");
}

// Around every edge of the register tiles (rows of 2, 6 and 12, columns of 4 to 32).
const std::vector<LinearShape> kLinearShapes = {
    {1, 1, 1},   {1, 17, 10}, {2, 31, 33}, {3, 8, 5},    {5, 40, 12},
    {7, 13, 25}, {8, 16, 16}, {33, 9, 13}, {17, 65, 10}, {64, 48, 31},
};

TEST(LinearKernels, HaveTheBitsOfAPlainLoopOnEveryInstructionSet) {
  for (const LinearShape& s : kLinearShapes) {
    expect_bits_of_loops_everywhere<float>(s, 1);
    expect_bits_of_loops_everywhere<double>(s, 2);
  }
}

TEST(LinearKernels, StayWithinTheRoundingBound) {
  for (const LinearShape& s : kLinearShapes) {
    expect_results_within_bound(s, 3, s.in + 1, s.out, s.batch + 1);
  }
}

TEST(LinearKernels, AreExactOnIntegers) {
  for (const LinearShape& s : kLinearShapes) expect_exact_on_integers(s, 4);
}

TEST(LinearKernels, TakeAnEmptyBatch) {
  expect_nothing_from_an_empty_batch(LinearShape{0, 5, 3}, 5);
}

// At full size from the first case on: small shapes are drawn anyway.
Index in_range(Index low, Index high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Index>(low, high));
}

Conv2dShape generated_shape() {
  Conv2dShape s;
  s.kernel = in_range(1, 5);
  s.stride = in_range(1, 4);
  s.padding = in_range(0, 4);
  s.dilation = in_range(1, 4);
  const Index span = s.dilation * (s.kernel - 1) + 1;
  const Index least = std::max<Index>(1, span - 2 * s.padding);
  s.height = in_range(least, least + 12);
  s.width = in_range(least, least + 12);
  s.batch = in_range(1, 4);
  s.in_channels = in_range(1, 5);
  s.out_channels = in_range(1, 20);
  return s;
}

TEST(ConvKernels, HaveTheBitsOfAPlainLoopOnEveryInstructionSet) {
  std::map<std::string, int> seen;
  const bool holds = rc::check("convolution kernels equal plain loops", [&seen] {
    const Conv2dShape s = generated_shape();
    seen["strided"] += s.stride > 1;
    seen["dilated"] += s.dilation > 1 && s.kernel > 1;
    seen["padded beyond the kernel"] += s.padding > s.dilation * (s.kernel - 1);
    seen["rest left by the stride"] +=
        (s.height + 2 * s.padding - s.dilation * (s.kernel - 1) - 1) % s.stride != 0;
    seen["1x1 kernel"] += s.kernel == 1;
    seen["more than one column panel"] += s.out_channels > 16;
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    expect_bits_of_loops_everywhere<float>(s, seed);
    expect_bits_of_loops_everywhere<double>(s, seed);
    RC_ASSERT(!::testing::Test::HasFailure());
  });
  EXPECT_TRUE(holds);
  for (const auto& [name, count] : seen) {
    std::printf("%4d cases: %s\n", count, name.c_str());
    EXPECT_GT(count, 0) << name;
  }
}

// One shape of each kind, and the two layers of the model cnn.
const std::vector<Conv2dShape> kConvShapes = {
    {2, 1, 28, 28, 32, 3, 1, 1, 1}, {1, 32, 14, 14, 64, 3, 1, 1, 1}, {2, 3, 9, 7, 5, 3, 2, 1, 1},
    {1, 2, 11, 13, 7, 3, 1, 2, 2},  {3, 4, 6, 5, 17, 1, 1, 0, 1},    {2, 2, 10, 10, 3, 4, 3, 2, 2},
};

TEST(ConvKernels, StayWithinTheRoundingBound) {
  for (const Conv2dShape& s : kConvShapes) {
    expect_results_within_bound(s, 7, s.taps() + 1, s.out_channels * s.kernel * s.kernel,
                                s.batch * s.out_height() * s.out_width() + 1);
  }
}

TEST(ConvKernels, AreExactOnIntegers) {
  for (const Conv2dShape& s : kConvShapes) expect_exact_on_integers(s, 8);
}

TEST(ConvKernels, WithoutABiasAreThoseOfAZeroOne) {
  for (const Conv2dShape& s : kConvShapes) {
    auto data = layer_data<float>(s, 10, random_values<double>);
    data.bias.assign(data.bias.size(), 0);
    Cpu<float> cpu;
    const Results<float> expected = by_device<float>(cpu, data);
    Values<float> y(data.dy.size()), dw = data.dw;
    cpu.conv2d_forward(s, data.x.data(), data.w.data(), nullptr, y.data());
    cpu.conv2d_backward_parameters(s, data.dy.data(), data.x.data(), dw.data(), nullptr);
    EXPECT_EQ(y, expected.forward);
    EXPECT_EQ(dw, expected.weight);
  }
}

TEST(ConvKernels, TakeAnEmptyBatch) {
  expect_nothing_from_an_empty_batch(Conv2dShape{0, 2, 5, 5, 3, 3, 1, 1, 1}, 9);
}

TEST(Cpu, RefusesAnInstructionSetThatItLacks) {
  const std::vector<Isa> supported = supported_isas();
  for (Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (std::find(supported.begin(), supported.end(), isa) != supported.end()) {
      EXPECT_EQ(Cpu<float>(isa).isa(), isa);
      continue;
    }
    try {
      Cpu<float> cpu(isa);
      FAIL() << "expected ConfigError";
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what())
                    .find("instruction set " + std::string(to_string(isa)) + " cannot run here"),
                0u)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace ddproof::testing
