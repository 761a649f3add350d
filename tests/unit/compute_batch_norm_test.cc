// The operations of batch norm: the bits of plain loops, and the exact result within rounding.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "tests/unit/naive_layers.h"

namespace ddproof::testing {
namespace {

constexpr double kEps = 1e-5;

// What the operations read.
template <class T>
struct Data {
  BatchNormShape shape;
  Values<T> x, dy, w, bias, mean_dy, mean_dy_x;

  explicit Data(const BatchNormShape& s, Values<T> (*draw)(std::mt19937_64&, Index)) : shape(s) {
    std::mt19937_64 engine(17);
    x = draw(engine, s.count());
    dy = draw(engine, s.count());
    for (Values<T>* each : {&w, &bias, &mean_dy, &mean_dy_x}) *each = draw(engine, s.channels);
  }
};

template <class T>
struct BatchNormResults {
  Values<T> mean, variance, inverse, y, plain, sum_dy, sum_dy_x, dx;
  bool operator==(const BatchNormResults&) const = default;
};

template <class T>
BatchNormResults<T> by_device(const Data<T>& d) {
  Cpu<T> cpu;
  const auto channels = static_cast<std::size_t>(d.shape.channels);
  BatchNormResults<T> r;
  for (Values<T>* each : {&r.mean, &r.variance, &r.inverse, &r.sum_dy, &r.sum_dy_x}) {
    each->resize(channels, T(-7));
  }
  for (Values<T>* each : {&r.y, &r.plain, &r.dx}) each->resize(d.x.size());
  cpu.batch_norm_statistics(d.shape, d.x.data(), r.mean.data(), r.variance.data());
  cpu.inverse_deviations(d.shape.channels, r.variance.data(), kEps, r.inverse.data());
  const ChannelStatistics<T> of{r.mean.data(), r.inverse.data()};
  cpu.batch_norm_forward(d.shape, of, d.x.data(), d.w.data(), d.bias.data(), r.y.data());
  cpu.batch_norm_forward(d.shape, of, d.x.data(), nullptr, nullptr, r.plain.data());
  cpu.batch_norm_backward_sums(d.shape, of, d.x.data(), d.dy.data(), r.sum_dy.data(),
                               r.sum_dy_x.data());
  cpu.batch_norm_backward_input(d.shape, of, d.x.data(), d.dy.data(), d.w.data(), d.mean_dy.data(),
                                d.mean_dy_x.data(), r.dx.data());
  return r;
}

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;

// The sum of term(element) over a channel, in the order that device.h promises.
template <class T, class Term>
Sum<T> naive_sum(const BatchNormShape& s, Index channel, Term term) {
  Sum<T> sum = 0;
  for (Index n = 0; n < s.batch; ++n) {
    Sum<T> plane = 0;
    for (Index p = 0; p < s.positions; ++p) {
      plane = term((n * s.channels + channel) * s.positions + p, plane);
    }
    sum += plane;
  }
  return sum;
}

template <class T>
BatchNormResults<T> by_loops(const Data<T>& d) {
  using Wide = Sum<T>;
  BatchNormResults<T> r;
  const auto n = static_cast<Wide>(d.shape.per_channel());
  for (Index c = 0; c < d.shape.channels; ++c) {
    const Wide sum =
        naive_sum<T>(d.shape, c, [&](Index i, Wide s) { return s + Wide{at(d.x, i)}; });
    const Wide mean = n > 0 ? sum / n : 0;
    const Wide squares = naive_sum<T>(d.shape, c, [&](Index i, Wide s) {
      return std::fma(Wide{at(d.x, i)} - mean, Wide{at(d.x, i)} - mean, s);
    });
    r.mean.push_back(static_cast<T>(mean));
    r.variance.push_back(n > 0 ? static_cast<T>(squares / n) : T(0));
    r.inverse.push_back(
        static_cast<T>(Wide(1) / std::sqrt(Wide{r.variance.back()} + static_cast<Wide>(kEps))));
    const auto x = [&](Index i) { return (at(d.x, i) - r.mean.back()) * r.inverse.back(); };
    r.sum_dy.push_back(static_cast<T>(
        naive_sum<T>(d.shape, c, [&](Index i, Wide s) { return s + Wide{at(d.dy, i)}; })));
    r.sum_dy_x.push_back(static_cast<T>(naive_sum<T>(
        d.shape, c, [&](Index i, Wide s) { return std::fma(Wide{at(d.dy, i)}, Wide{x(i)}, s); })));
  }
  for (Index i = 0; i < d.shape.count(); ++i) {
    const Index c = i / d.shape.positions % d.shape.channels;
    const T x = (at(d.x, i) - at(r.mean, c)) * at(r.inverse, c);
    r.plain.push_back(std::fma(T(1), x, T(0)));
    r.y.push_back(std::fma(at(d.w, c), x, at(d.bias, c)));
    const T rest = std::fma(x, -at(d.mean_dy_x, c), at(d.dy, i) - at(d.mean_dy, c));
    r.dx.push_back(rest * (at(r.inverse, c) * at(d.w, c)));
  }
  return r;
}

// Fewer, as many and more planes than are summed at once; rows; no values.
const std::vector<BatchNormShape> kShapes = {
    {2, 3, 35}, {1, 8, 49}, {4, 5, 16}, {16, 3, 1}, {1, 1, 2}, {0, 3, 4}, {3, 2, 0}, {9, 16, 64},
};

template <class T>
void expect_bits_of_loops() {
  for (const BatchNormShape& s : kShapes) {
    const Data<T> data(s, random_values<T>);
    const BatchNormResults<T> actual = by_device(data), expected = by_loops(data);
    EXPECT_EQ(actual.mean, expected.mean);
    EXPECT_EQ(actual.variance, expected.variance);
    EXPECT_EQ(actual.inverse, expected.inverse);
    EXPECT_TRUE(actual == expected) << s.batch << " x " << s.channels << " x " << s.positions;
  }
}

TEST(BatchNormKernels, HaveTheBitsOfPlainLoops) {
  expect_bits_of_loops<float>();
  expect_bits_of_loops<double>();
}

// Sums in double lose next to nothing, so that each result is the exact one, rounded; but for one
// unit in the last place where that is a tie in double.
TEST(BatchNormKernels, StatisticsOfFloatsAreCorrectToTheLastPlace) {
  for (const BatchNormShape& s : kShapes) {
    Data<float> data(s, random_values<float>);
    for (float& value : data.x) value += 300;  // where the sum of squares minus a square has none
    const BatchNormResults<float> actual = by_device(data);
    for (Index c = 0; c < s.channels; ++c) {
      using Exact = long double;
      const auto n = static_cast<Exact>(std::max<Index>(1, s.per_channel()));
      Exact sum = 0, squares = 0;
      const auto each = [&](auto body) {
        for (Index k = 0; k < s.per_channel(); ++k) {
          body(Exact{
              at(data.x, (k / s.positions * s.channels + c) * s.positions + k % s.positions)});
        }
      };
      each([&](Exact x) { sum += x; });
      each([&](Exact x) { squares += (x - sum / n) * (x - sum / n); });
      const auto ulp = [](float x) { return std::nextafter(x, HUGE_VALF) - x; };
      EXPECT_LE(std::fabs(at(actual.mean, c) - sum / n), ulp(at(actual.mean, c)));
      EXPECT_LE(std::fabs(at(actual.variance, c) - squares / n), ulp(at(actual.variance, c)));
    }
  }
}

TEST(BatchNormKernels, ANanStaysInItsChannel) {
  Data<float> data({2, 3, 4}, random_values<float>);
  data.x[5] = std::numeric_limits<float>::quiet_NaN();  // of channel 1
  const BatchNormResults<float> r = by_device(data);
  for (std::size_t i = 0; i < data.x.size(); ++i) {
    EXPECT_EQ(std::isnan(r.y[i]), i / 4 % 3 == 1) << i;
    EXPECT_EQ(std::isnan(r.dx[i]), i / 4 % 3 == 1) << i;
  }
}

}  // namespace
}  // namespace ddproof::testing
