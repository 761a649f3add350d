// Every operation of Cuda<T>, as its host twins compute it: the bits of Cpu<T>.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "reference/compute/cpu.h"
#include "tests/nccl/cuda_world.h"
#include "tests/nccl/layer_work.h"
#include "tests/unit/naive_layers.h"

namespace ddproof {
namespace {

using testing::random_values;

template <class T>
using Values = std::vector<T>;

// `work(device)` returns results on the host; they are equal on the CPU and on CUDA.
template <class T, class Work>
void expect_same_bits(const Work& work) {
  Cpu<T> cpu;
  const Values<T> expected = work(static_cast<Device<T>&>(cpu));
  on_cuda([&] {
    Cuda<T> cuda(0);
    EXPECT_TRUE(have_same_bits(work(static_cast<Device<T>&>(cuda)), expected));
  });
}

template <class T>
void append(Values<T>& to, const Tensor<T>& from) {
  const Values<T> values = to_host(from);
  to.insert(to.end(), values.begin(), values.end());
}

// With zeros of both signs, infinities and NaNs among them.
template <class T>
Values<T> odd_values(std::mt19937_64& engine, std::int64_t count) {
  constexpr T kOdd[] = {T(0),
                        -T(0),
                        std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::quiet_NaN(),
                        std::numeric_limits<T>::denorm_min()};
  Values<T> values = random_values<T>(engine, count);
  for (std::size_t i = 0; i < values.size(); i += 5) values[i] = kOdd[engine() % std::size(kOdd)];
  return values;
}

constexpr std::int64_t kCounts[] = {0, 1, 2, 31, 257, 1009};

template <class T>
Values<T> element_wise(Device<T>& device, std::int64_t count) {
  std::mt19937_64 engine(3);
  Tensor<T> x = to_device(device, odd_values<T>(engine, count));
  Tensor<T> y = to_device(device, odd_values<T>(engine, count));
  Tensor<T> z(device, {count});
  Values<T> all;
  const auto note = [&] { append(all, z); };
  note();
  device.fill(z.data(), count, T(-2.5)), note();
  device.copy(z.data(), x.data(), count), note();
  device.scaled_copy(z.data(), x.data(), T(0.3), count), note();
  device.scaled_copy(z.data(), z.data(), T(0.7), count), note();
  device.axpy(z.data(), y.data(), T(0.1), count), note();
  device.relu_forward(x.data(), z.data(), count), note();
  device.relu_backward(z.data(), y.data(), y.data(), count);
  append(all, y);
  return all;
}

TEST(CudaOperations, ElementWiseOnesHaveTheBitsOfTheCpu) {
  for (const std::int64_t count : kCounts) {
    expect_same_bits<float>([=](Device<float>& device) { return element_wise(device, count); });
    expect_same_bits<double>([=](Device<double>& device) { return element_wise(device, count); });
  }
}

template <class T>
Values<T> sgd_updates(Device<T>& device, std::int64_t count) {
  using Momentum = SgdRule::Momentum;
  const SgdFactors<T> factors{T(0.01), T(0.9), T(0.7), T(-0.05)};
  std::mt19937_64 engine(4);
  Tensor<T> w = to_device(device, odd_values<T>(engine, count));
  const Tensor<T> gradient = to_device(device, odd_values<T>(engine, count));
  Tensor<T> buffer = to_device(device, odd_values<T>(engine, count));
  Values<T> all;
  for (const Momentum momentum : {Momentum::kNone, Momentum::kFirst, Momentum::kRunning}) {
    for (const bool flag : {false, true}) {
      const SgdRule rule{.decays = flag, .momentum = momentum, .nesterov = !flag};
      T* const b = momentum == Momentum::kNone ? nullptr : buffer.data();
      device.sgd_update(rule, factors, w.data(), gradient.data(), b, count);
      append(all, w);
      append(all, buffer);
    }
  }
  return all;
}

TEST(CudaOperations, SgdHasTheBitsOfTheCpu) {
  for (const std::int64_t count : kCounts) {
    expect_same_bits<float>([=](Device<float>& device) { return sgd_updates(device, count); });
    expect_same_bits<double>([=](Device<double>& device) { return sgd_updates(device, count); });
  }
}

// Two updates of each rule, from zeros.
template <class T>
Values<T> adam_updates(Device<T>& device, std::int64_t count) {
  using Decay = AdamRule::Decay;
  const AdamFactors<T> factors{T(0.9), T(0.8), T(0.2), T(0.99), T(0.01), T(0.3), T(1e-8), T(-0.05)};
  std::mt19937_64 engine(4);
  Tensor<T> w = to_device(device, odd_values<T>(engine, count));
  const Tensor<T> gradient = to_device(device, odd_values<T>(engine, count));
  Values<T> all;
  for (const Decay decay : {Decay::kNone, Decay::kGradient, Decay::kWeight}) {
    for (const bool amsgrad : {false, true}) {
      Tensor<T> m(device, {count}), v(device, {count}), largest(device, {count});
      for (int update = 0; update < 2; ++update) {
        device.adam_update({.decay = decay, .amsgrad = amsgrad}, factors, w.data(), gradient.data(),
                           {m.data(), v.data(), amsgrad ? largest.data() : nullptr}, count);
      }
      for (const Tensor<T>* tensor : {&w, &m, &v, &largest}) append(all, *tensor);
    }
  }
  return all;
}

TEST(CudaOperations, AdamHasTheBitsOfTheCpu) {
  for (const std::int64_t count : kCounts) {
    expect_same_bits<float>([=](Device<float>& device) { return adam_updates(device, count); });
    expect_same_bits<double>([=](Device<double>& device) { return adam_updates(device, count); });
  }
}

template <class T>
Values<T> lane_sums_of(Device<T>& device, std::int64_t count) {
  std::mt19937_64 engine(7);
  const Tensor<T> x = to_device(device, random_values<T>(engine, count));
  const Tensor<T> odd = to_device(device, odd_values<T>(engine, count));
  Values<T> all;
  for (const LaneSum kind : {LaneSum::kSquares, LaneSum::kZeros}) {
    for (const Tensor<T>* tensor : {&x, &odd}) {
      Tensor<T> sums(device, {kSumLanes});
      device.lane_sums(kind, tensor->data(), sums.data(), count);
      append(all, sums);
    }
  }
  return all;
}

TEST(CudaOperations, LaneSumsHaveTheBitsOfTheCpu) {
  for (const std::int64_t count : {0, 1, 257, 1023, 1024, 1025, 5000}) {
    expect_same_bits<float>([=](Device<float>& device) { return lane_sums_of(device, count); });
    expect_same_bits<double>([=](Device<double>& device) { return lane_sums_of(device, count); });
  }
}

template <class T>
Values<T> cross_entropy(Device<T>& device, std::int64_t rows, std::int64_t classes) {
  std::mt19937_64 engine(5);
  const Tensor<T> logits = to_device(device, random_values<T>(engine, rows * classes));
  Tensor<T> loss(device, {rows}), gradient(device, {rows, classes});
  std::vector<std::int64_t> targets;
  for (std::int64_t r = 0; r < rows; ++r) targets.push_back(r % (classes + 1) - 1);
  device.softmax_cross_entropy(rows, classes, logits.data(), targets.data(), loss.data(),
                               gradient.data());
  targets.assign(targets.size(), -7);  // the host's memory is its own again
  Values<T> all = to_host(loss);
  append(all, gradient);
  return all;
}

TEST(CudaOperations, TheLossHasTheBitsOfTheCpu) {
  for (const std::int64_t rows : {0, 1, 7, 64}) {
    for (const std::int64_t classes : {1, 10, 13}) {
      expect_same_bits<float>(
          [=](Device<float>& device) { return cross_entropy(device, rows, classes); });
      expect_same_bits<double>(
          [=](Device<double>& device) { return cross_entropy(device, rows, classes); });
    }
  }
}

template <class T>
Values<T> pools(Device<T>& device, const Pool2dShape& s) {
  std::mt19937_64 engine(6);
  Values<T> values = testing::random_integers<T>(engine, s.planes * s.height * s.width);
  for (std::size_t i = 0; i < values.size(); i += 13) {
    values[i] = std::numeric_limits<T>::quiet_NaN();
  }
  const Tensor<T> x = to_device(device, values);
  const std::int64_t outputs = s.planes * s.out_height() * s.out_width();
  const Tensor<T> dy = to_device(device, random_values<T>(engine, outputs));
  Tensor<T> y(device, {outputs}), dx = to_device(device, values);
  device.max_pool2d_forward(s, x.data(), y.data());
  device.max_pool2d_backward(s, x.data(), dy.data(), dx.data());
  Values<T> all = to_host(y);
  append(all, dx);
  return all;
}

TEST(CudaOperations, PoolingHasTheBitsOfTheCpu) {
  for (const Pool2dShape& s : std::vector<Pool2dShape>{{0, 4, 4, 2, 2},
                                                       {3, 28, 28, 2, 2},
                                                       {2, 7, 9, 2, 2},
                                                       {1, 9, 8, 3, 2},
                                                       {2, 5, 5, 2, 1},
                                                       {1, 7, 6, 4, 1},
                                                       {1, 4, 4, 4, 4},
                                                       {2, 11, 11, 3, 4}}) {
    expect_same_bits<float>([&](Device<float>& device) { return pools(device, s); });
    expect_same_bits<double>([&](Device<double>& device) { return pools(device, s); });
  }
}

template <class T>
Values<T> batch_norm(Device<T>& device, const BatchNormShape& s) {
  std::mt19937_64 engine(9);
  const auto draw = [&](std::int64_t n) { return to_device(device, random_values<T>(engine, n)); };
  const Tensor<T> x = draw(s.count()), dy = draw(s.count());
  const Tensor<T> w = draw(s.channels), bias = draw(s.channels);
  Tensor<T> mean(device, {s.channels}), variance(device, {s.channels});
  Tensor<T> inverse(device, {s.channels}), sums(device, {2 * s.channels});
  Tensor<T> y(device, {s.count()}), dx(device, {s.count()});
  Values<T> all;
  device.batch_norm_statistics(s, x.data(), mean.data(), variance.data());
  device.inverse_deviations(s.channels, variance.data(), 1e-5, inverse.data());
  const ChannelStatistics<T> of{mean.data(), inverse.data()};
  device.batch_norm_backward_sums(s, of, x.data(), dy.data(), sums.data(),
                                  sums.data() + s.channels);
  for (const bool affine : {true, false}) {
    device.batch_norm_forward(s, of, x.data(), affine ? w.data() : nullptr,
                              affine ? bias.data() : nullptr, y.data());
    device.batch_norm_backward_input(s, of, x.data(), dy.data(), affine ? w.data() : nullptr,
                                     sums.data(), sums.data() + s.channels, dx.data());
    append(all, y);
    append(all, dx);
  }
  for (const Tensor<T>* each : {&mean, &variance, &inverse, &sums}) append(all, *each);
  return all;
}

TEST(CudaOperations, BatchNormHasTheBitsOfTheCpu) {
  for (const BatchNormShape& s :
       std::vector<BatchNormShape>{{0, 3, 4}, {2, 3, 35}, {9, 16, 64}, {17, 5, 1}}) {
    expect_same_bits<float>([&](Device<float>& device) { return batch_norm(device, s); });
    expect_same_bits<double>([&](Device<double>& device) { return batch_norm(device, s); });
  }
}

template <class T>
Values<T> images(Device<T>& device, const BilinearShape& s) {
  std::mt19937_64 engine(12);
  const std::int64_t in = s.height * s.width, out = s.out_height * s.out_width;
  const Tensor<T> x = to_device(device, random_values<T>(engine, s.planes * in));
  const Tensor<T> dy = to_device(device, random_values<T>(engine, s.planes * out));
  Tensor<T> y(device, {s.planes * out}), dx(device, {s.planes * in}), z(device, {s.planes * in});
  device.bilinear_forward(s, x.data(), y.data());
  device.bilinear_backward(s, dy.data(), dx.data());
  device.transpose(s.planes, s.height, s.width, x.data(), z.data());
  Values<T> all = to_host(y);
  append(all, dx);
  append(all, z);
  return all;
}

TEST(CudaOperations, InterpolationAndTransposesHaveTheBitsOfTheCpu) {
  for (const BilinearShape& s : std::vector<BilinearShape>{{0, 3, 4, 6, 8},
                                                           {2, 3, 4, 6, 8},
                                                           {3, 4, 5, 14, 18},
                                                           {1, 1, 1, 3, 2},
                                                           {2, 5, 7, 3, 2},
                                                           {1, 3, 3, 3, 3},
                                                           {1, 1, 4, 9, 7},
                                                           {2, 13, 11, 37, 5}}) {
    expect_same_bits<float>([&](Device<float>& device) { return images(device, s); });
    expect_same_bits<double>([&](Device<double>& device) { return images(device, s); });
  }
}

template <class T>
Values<T> conv_without_bias(Device<T>& device, const Conv2dShape& s) {
  std::mt19937_64 engine(10);
  const LayerSizes n = sizes_of(s);
  const auto draw = [&](std::int64_t count) {
    return to_device(device, random_values<T>(engine, count));
  };
  const Tensor<T> x = draw(s.batch * n.x), w = draw(n.w), dy = draw(s.batch * n.y);
  Tensor<T> y(device, {s.batch * n.y}), dw = draw(n.w);
  device.conv2d_forward(s, x.data(), w.data(), nullptr, y.data());
  device.conv2d_backward_parameters(s, dy.data(), x.data(), dw.data(), nullptr);
  Values<T> all = to_host(y);
  append(all, dw);
  return all;
}

TEST(CudaOperations, ConvolutionsWithoutABiasHaveTheBitsOfTheCpu) {
  for (const Conv2dShape& s : std::vector<Conv2dShape>{
           {0, 2, 5, 5, 3, 3, 1, 1, 1}, {4, 3, 9, 7, 5, 3, 2, 1, 1}, {2, 3, 9, 7, 8, 3, 1, 2, 2}}) {
    expect_same_bits<float>([&](Device<float>& device) { return conv_without_bias(device, s); });
    expect_same_bits<double>([&](Device<double>& device) { return conv_without_bias(device, s); });
  }
}

template <class LayerShape>
void expect_layers_agree(const LayerShape& s) {
  expect_same_bits<float>([&](Device<float>& device) {
    const bool is_cpu = device.name() == "cpu";
    return run_layer(device, s, is_cpu ? std::max<std::int64_t>(s.batch, 1) : 3).all();
  });
  for (const std::int64_t piece : {1, 1000}) {
    expect_same_bits<double>(
        [&](Device<double>& device) { return run_layer(device, s, piece).all(); });
  }
}

TEST(CudaOperations, LinearLayersHaveTheBitsOfTheCpuHoweverABatchIsCut) {
  for (const LinearShape& s : std::vector<LinearShape>{
           {0, 3, 2}, {1, 1, 1}, {5, 16, 64}, {7, 31, 17}, {65, 67, 71}, {64, 130, 10}}) {
    expect_layers_agree(s);
  }
}

TEST(CudaOperations, ConvolutionsHaveTheBitsOfTheCpuHoweverABatchIsCut) {
  for (const Conv2dShape& s : std::vector<Conv2dShape>{{0, 2, 5, 5, 3, 3, 1, 1, 1},
                                                       {2, 1, 28, 28, 32, 3, 1, 1, 1},
                                                       {1, 32, 14, 14, 64, 3, 1, 1, 1},
                                                       {4, 3, 9, 7, 5, 3, 2, 1, 1},
                                                       {1, 2, 11, 13, 7, 3, 1, 2, 2},
                                                       {5, 4, 6, 5, 17, 1, 1, 0, 1},
                                                       {1, 1, 3, 3, 2, 2, 1, 3, 1},
                                                       {4, 2, 10, 10, 3, 4, 3, 2, 2}}) {
    expect_layers_agree(s);
  }
}

}  // namespace
}  // namespace ddproof
