// What operations cost in virtual time, and that their results stay the same.
#include "reference/compute/charged_device.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"

namespace ddproof {
namespace {

constexpr ComputeCost kCost{.flops_per_second = 1'000'000'000, .bytes_per_second = 4'000'000'000};

// The virtual time that `work` takes on one simulated rank.
std::int64_t nanoseconds_of(const ComputeCost& cost,
                            const std::function<void(Device<float>&)>& work) {
  std::int64_t nanoseconds = -1;
  make_backend("sim")->run_world({.world_size = 1}, [&](RankContext& rank) {
    Cpu<float> cpu;
    ChargedDevice<float> device(cpu, rank.runtime, cost);
    const TimePoint begin = rank.runtime.now();
    work(device);
    nanoseconds = (rank.runtime.now() - begin).count();
  });
  return nanoseconds;
}

TEST(ChargedDevice, TakesTheOperationsOfAProduct) {
  const LinearShape shape{.batch = 3, .in = 5, .out = 7};
  std::vector<float> x(15, 2), w(35, 3), bias(7, 1), y(21), dx(15), dw(35), dbias(7);
  const auto forward = [&](Device<float>& device) {
    device.linear_forward(shape, x.data(), w.data(), bias.data(), y.data());
  };
  EXPECT_EQ(nanoseconds_of(kCost, forward), 2 * 3 * 5 * 7);
  EXPECT_EQ(y, std::vector<float>(21, 31));
  EXPECT_EQ(nanoseconds_of(kCost,
                           [&](Device<float>& device) {
                             device.linear_backward_input(shape, y.data(), w.data(), dx.data());
                             device.linear_backward_parameters(shape, y.data(), x.data(), dw.data(),
                                                               dbias.data());
                           }),
            2 * 2 * 3 * 5 * 7);
}

TEST(ChargedDevice, TakesTheOperationsOfAConvolution) {
  const Conv2dShape shape{.batch = 2,
                          .in_channels = 3,
                          .height = 6,
                          .width = 5,
                          .out_channels = 4,
                          .kernel = 3,
                          .padding = 1};
  std::vector<float> x(2 * 3 * 30), w(4 * 27), bias(4), y(2 * 4 * 30);
  EXPECT_EQ(nanoseconds_of(kCost,
                           [&](Device<float>& device) {
                             device.conv2d_forward(shape, x.data(), w.data(), bias.data(),
                                                   y.data());
                           }),
            2 * (2 * 4 * 30) * 27);
}

TEST(ChargedDevice, TakesTheBytesThatAreMoved) {
  std::vector<float> a(100, 1), b(100, 2);
  const auto axpy = [&](Device<float>& device) { device.axpy(a.data(), b.data(), 3, 100); };
  EXPECT_EQ(nanoseconds_of(kCost, axpy), 300);  // two reads and a write, a nanosecond each
  EXPECT_EQ(a, std::vector<float>(100, 7));
  const auto copy = [&](Device<float>& device) { device.copy(a.data(), b.data(), 100); };
  EXPECT_EQ(nanoseconds_of(kCost, copy), 200);
  EXPECT_EQ(nanoseconds_of({}, copy), 0);
  const SgdRule rule{.momentum = SgdRule::Momentum::kRunning};
  const auto update = [&](Device<float>& device) {
    std::vector<float> momentum(100, 1);
    device.sgd_update(rule, {.momentum = 1, .one_minus_dampening = 1, .minus_lr = -1}, a.data(),
                      b.data(), momentum.data(), 100);
  };
  EXPECT_EQ(nanoseconds_of(kCost, update), 500);
  std::vector<float> m(100), v(100), largest(100), sums(kSumLanes);
  const auto adam = [&](bool amsgrad) {
    return [&, amsgrad](Device<float>& device) {
      device.adam_update({.amsgrad = amsgrad}, {.sqrt_correction = 1, .eps = 1}, a.data(), b.data(),
                         {m.data(), v.data(), largest.data()}, 100);
    };
  };
  EXPECT_EQ(nanoseconds_of(kCost, adam(false)), 700);  // reads four, writes three
  EXPECT_EQ(nanoseconds_of(kCost, adam(true)), 900);
  const auto squares = [&](Device<float>& device) {
    device.lane_sums(LaneSum::kSquares, b.data(), sums.data(), 100);
  };
  EXPECT_EQ(nanoseconds_of(kCost, squares), 100 + kSumLanes);
  EXPECT_EQ(sums[99], 4);
}

TEST(ChargedDevice, TakesTheBytesOfBatchNorm) {
  const BatchNormShape shape{.batch = 3, .channels = 2, .positions = 5};
  std::vector<float> x(30, 2), y(30), dx(30), mean(2), inverse(2, 1), sums(4);
  const ChannelStatistics<float> of{mean.data(), inverse.data()};
  EXPECT_EQ(nanoseconds_of(kCost,
                           [&](Device<float>& device) {
                             device.batch_norm_statistics(shape, x.data(), mean.data(),
                                                          inverse.data());
                           }),
            2 * 30 + 2 * 2);
  EXPECT_EQ(mean[0], 2);
  EXPECT_EQ(nanoseconds_of(kCost,
                           [&](Device<float>& device) {
                             device.inverse_deviations(2, inverse.data(), 1, inverse.data());
                             device.batch_norm_forward(shape, of, x.data(), nullptr, nullptr,
                                                       y.data());
                           }),
            2 * 2 + 2 * 30 + 4 * 2);
  EXPECT_EQ(y, std::vector<float>(30, 0));
  EXPECT_EQ(nanoseconds_of(kCost,
                           [&](Device<float>& device) {
                             device.batch_norm_backward_sums(shape, of, x.data(), x.data(),
                                                             sums.data(), sums.data() + 2);
                             device.batch_norm_backward_input(shape, of, x.data(), x.data(),
                                                              nullptr, sums.data(), sums.data() + 2,
                                                              dx.data());
                           }),
            2 * 30 + 4 * 2 + 3 * 30 + 5 * 2);
  EXPECT_EQ(sums[1], 30);
}

TEST(ChargedDevice, TakesTheBytesOfImages) {
  const BilinearShape shape{.planes = 2, .height = 3, .width = 4, .out_height = 6, .out_width = 8};
  std::vector<float> x(24, 2), y(96), dx(24);
  EXPECT_EQ(nanoseconds_of(kCost,
                           [&](Device<float>& device) {
                             device.bilinear_forward(shape, x.data(), y.data());
                             device.bilinear_backward(shape, y.data(), dx.data());
                             device.transpose(2, 3, 4, x.data(), dx.data());
                           }),
            2 * (24 + 96) + 2 * 24);
  EXPECT_EQ(y, std::vector<float>(96, 2));
  EXPECT_EQ(dx, x);
}

}  // namespace
}  // namespace ddproof
