// Batch norm over ranks on every backend: what one device computes for the whole batch. Bit for bit
// where sums are exact, and within the bound of its roundings elsewhere.
#include "reference/model/sync_batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "tests/contract/contract.h"
#include "tests/support/copy_of.h"

namespace ddproof::contract {
namespace {

constexpr std::int64_t kChannels = 3, kPositions = 2;
constexpr std::int64_t kSample = kChannels * kPositions;
// The running statistics are then those of the last batch.
constexpr BatchNormOptions kOptions = {.channels = kChannels, .momentum = 1};

// A batch that ranks share: rank r has the next counts[r] samples.
struct SharedBatch {
  std::vector<std::int64_t> counts;
  std::vector<float> x, dy;

  std::int64_t samples() const {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  }
  std::int64_t first(int rank) const {
    return std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
  }
};

template <class Draw>
SharedBatch make_batch(std::vector<std::int64_t> counts, Draw draw) {
  SharedBatch batch{.counts = std::move(counts)};
  std::mt19937_64 engine(23);
  for (std::int64_t i = 0; i < batch.samples() * kSample; ++i) {
    batch.x.push_back(draw(engine));
    batch.dy.push_back(draw(engine));
  }
  return batch;
}

// Small integers: with counts that are powers of two and add up to one, all statistics are exact.
float draw_integer(std::mt19937_64& engine) { return static_cast<float>(engine() % 9) - 4; }
float draw_real(std::mt19937_64& engine) {
  return static_cast<float>(static_cast<std::int64_t>(engine() >> 40) - (1 << 23)) * 0x1p-20F + 3;
}

// A half, none, a quarter, an eighth, ... and what is left.
std::vector<std::int64_t> exact_counts(int ranks) {
  if (ranks == 1) return {4};
  std::vector<std::int64_t> counts;
  std::int64_t left = std::int64_t{2} << ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool none = rank == 1 && ranks > 2;
    counts.push_back(none ? 0 : rank + 1 == ranks ? left : left / 2);
    left -= counts.back();
  }
  return counts;
}

std::vector<std::int64_t> uneven_counts(int ranks) {
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(rank == 2 ? 0 : 3 * rank + 1);
  return counts;
}

struct Results {
  std::vector<float> y, dx, mean, variance, weight_gradient, bias_gradient;
};

// `count` samples from the `first` one on.
Results run_layer(BatchNorm<float>& layer, Device<float>& device, const SharedBatch& batch,
                  std::int64_t first, std::int64_t count) {
  const Shape shape = {count, kChannels, kPositions};
  Tensor<float> x(device, shape), dy(device, shape);
  std::copy_n(batch.x.begin() + first * kSample, x.count(), x.data());
  std::copy_n(batch.dy.begin() + first * kSample, dy.count(), dy.data());
  for (Parameter<float>* parameter : layer.parameters()) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      parameter->value.span()[c] = 0.5F + static_cast<float>(c);
    }
  }
  Results r;
  r.y = copy_of(layer.forward(x));
  r.dx = copy_of(layer.backward(dy, {}));
  r.mean = copy_of(layer.buffers()[0]->value);
  r.variance = copy_of(layer.buffers()[1]->value);
  r.weight_gradient = copy_of(layer.parameters()[0]->gradient);
  r.bias_gradient = copy_of(layer.parameters()[1]->gradient);
  return r;
}

Results on_one_device(const SharedBatch& batch) {
  Cpu<float> device;
  BatchNorm<float> layer(device, "bn1", kOptions);
  return run_layer(layer, device, batch, 0, batch.samples());
}

Results on_rank(const SharedBatch& batch, ProcessGroup& group) {
  Cpu<float> device;
  SyncBatchNorm<float> layer(device, "bn1", kOptions, group);
  const int rank = group.rank();
  return run_layer(layer, device, batch, batch.first(rank),
                   batch.counts[static_cast<std::size_t>(rank)]);
}

// What all ranks computed, one after another, as one device has it; gradients are added up.
class SyncBatchNormContract : public Contract {
 protected:
  std::vector<Results> on_ranks(const SharedBatch& batch) const {
    std::vector<Results> all(batch.counts.size());
    run(static_cast<int>(all.size()), [&](RankContext& rank) {
      all[static_cast<std::size_t>(rank.group.rank())] = on_rank(batch, rank.group);
    });
    return all;
  }
};
DDPROOF_CONTRACT(SyncBatchNormContract);

std::vector<float> joined(const std::vector<Results>& ranks, std::vector<float> Results::*part) {
  std::vector<float> all;
  for (const Results& rank : ranks) all.insert(all.end(), (rank.*part).begin(), (rank.*part).end());
  return all;
}

TEST_P(SyncBatchNormContract, HasTheBitsOfOneDeviceWhereSumsAreExact) {
  for (const int size : world_sizes()) {
    const SharedBatch batch = make_batch(exact_counts(size), draw_integer);
    const Results expected = on_one_device(batch);
    const std::vector<Results> ranks = on_ranks(batch);
    EXPECT_EQ(joined(ranks, &Results::y), expected.y) << size;
    for (const Results& rank : ranks) {
      EXPECT_EQ(rank.mean, expected.mean) << size;
      EXPECT_EQ(rank.variance, expected.variance) << size;
    }
  }
}

// How far two such runs may be apart, from exact values: u is the unit roundoff of float, and all
// terms of second order are below 2^-10 of those of first order. The sums in double count for
// nothing beside the roundings to float. Names: as in sync_batch_norm.h and batch_norm.h.
class Bounds {
 public:
  static constexpr double kU = 0x1p-24, kSlack = 1 + 0x1p-10;

  explicit Bounds(const SharedBatch& batch) : batch_(batch) {
    for (std::int64_t c = 0; c < kChannels; ++c) channels_.push_back(measure(c));
    for (std::int64_t c = 0; c < kChannels; ++c) measure_sums(c);
  }

  struct Channel {
    double mean = 0, variance = 0, inverse = 0;
    double mean_bound = 0, variance_bound = 0, inverse_bound = 0;  // the last relative
    double sum_dy = 0, sum_dy_x = 0, sum_dy_bound = 0, sum_dy_x_bound = 0;
  };
  const Channel& channel(std::int64_t c) const { return channels_[static_cast<std::size_t>(c)]; }

  double y_bound(std::int64_t i, double y) const {
    const std::int64_t c = channel_of(i);
    return (weight(c) * normalized_bound(i) + 2 * kU * std::fabs(y)) * kSlack;
  }

  // mean_dy = sum * (1 / n), four roundings on both sides; then fma(x', -mean_dy_x, dy - mean_dy),
  // and the product with inverse * weight, which is rounded itself.
  double dx_bound(std::int64_t i, double dx) const {
    const std::int64_t c = channel_of(i);
    const Channel& of = channel(c);
    const double n = static_cast<double>(batch_.samples() * kPositions);
    const double m1 = of.sum_dy / n, m2 = of.sum_dy_x / n, x = normalized(i);
    const double m1_bound = of.sum_dy_bound / n + 4 * kU * std::fabs(m1);
    const double m2_bound = of.sum_dy_x_bound / n + 4 * kU * std::fabs(m2);
    const double rest = std::fabs(dy(i) - m1 - x * m2);
    const double rest_bound = m1_bound + 2 * kU * std::fabs(dy(i) - m1) + std::fabs(x) * m2_bound +
                              std::fabs(m2) * normalized_bound(i) + 2 * kU * rest;
    return (of.inverse * weight(c) * rest_bound + std::fabs(dx) * (of.inverse_bound + 4 * kU)) *
           kSlack;
  }

 private:
  static double weight(std::int64_t c) { return 0.5 + static_cast<double>(c); }
  static std::int64_t channel_of(std::int64_t i) { return i / kPositions % kChannels; }
  double x(std::int64_t i) const { return batch_.x[static_cast<std::size_t>(i)]; }
  double dy(std::int64_t i) const { return batch_.dy[static_cast<std::size_t>(i)]; }
  double normalized(std::int64_t i) const {
    const Channel& of = channel(channel_of(i));
    return (x(i) - of.mean) * of.inverse;
  }
  // Both sides subtract their own mean and multiply by their own inverse.
  double normalized_bound(std::int64_t i) const {
    const Channel& of = channel(channel_of(i));
    return of.inverse * of.mean_bound + std::fabs(normalized(i)) * (of.inverse_bound + 4 * kU);
  }

  // body(element) for a channel's elements of one rank.
  template <class Body>
  void each(std::int64_t c, std::size_t rank, Body body) const {
    const std::int64_t first = batch_.first(static_cast<int>(rank));
    for (std::int64_t n = first; n < first + batch_.counts[rank]; ++n) {
      for (std::int64_t p = 0; p < kPositions; ++p) body((n * kChannels + c) * kPositions + p);
    }
  }

  struct Moments {
    double n = 0, mean = 0, variance = 0;
  };
  Moments moments(std::int64_t c, std::size_t first, std::size_t last) const {
    Moments m;
    double sum = 0, squares = 0;
    for (std::size_t r = first; r < last; ++r) each(c, r, [&](auto i) { ++m.n, sum += x(i); });
    if (m.n == 0) return m;
    m.mean = sum / m.n;
    for (std::size_t r = first; r < last; ++r) {
      each(c, r, [&](auto i) { squares += (x(i) - m.mean) * (x(i) - m.mean); });
    }
    m.variance = squares / m.n;
    return m;
  }

  // A rank's mean and variance are rounded when they travel, the combined ones again.
  Channel measure(std::int64_t c) const {
    const Moments whole = moments(c, 0, batch_.counts.size());
    Channel of{.mean = whole.mean, .variance = whole.variance};
    double carried = 0;  // into the combined mean
    for (std::size_t r = 0; r < batch_.counts.size(); ++r) {
      const Moments m = moments(c, r, r + 1);
      carried += m.n / whole.n * kU * std::fabs(m.mean);
    }
    of.mean_bound = (carried + 2 * kU * std::fabs(whole.mean)) * kSlack;
    of.variance_bound = 2 * kU * whole.variance;
    for (std::size_t r = 0; r < batch_.counts.size(); ++r) {
      const Moments m = moments(c, r, r + 1);
      const double off = kU * std::fabs(m.mean) + carried;
      of.variance_bound +=
          m.n / whole.n * (kU * m.variance + 2 * std::fabs(m.mean - whole.mean) * off + off * off);
    }
    of.variance_bound *= kSlack;
    const double shifted = whole.variance + kOptions.eps;
    of.inverse = 1 / std::sqrt(shifted);
    of.inverse_bound = of.variance_bound / (2 * shifted) + 2 * kU;
    return of;
  }

  // Each rank rounds its sum once; W of them are added in float.
  void measure_sums(std::int64_t c) {
    Channel& of = channels_[static_cast<std::size_t>(c)];
    const auto ranks = static_cast<double>(batch_.counts.size());
    for (std::size_t r = 0; r < batch_.counts.size(); ++r) {
      double sum = 0, sum_x = 0;
      each(c, r, [&](std::int64_t i) {
        sum += dy(i);
        sum_x += dy(i) * normalized(i);
        of.sum_dy_x_bound += std::fabs(dy(i)) * normalized_bound(i);
      });
      of.sum_dy += sum;
      of.sum_dy_x += sum_x;
      of.sum_dy_bound += ranks * kU * std::fabs(sum);
      of.sum_dy_x_bound += ranks * kU * std::fabs(sum_x);
    }
    of.sum_dy_bound = (of.sum_dy_bound + kU * std::fabs(of.sum_dy)) * kSlack;
    of.sum_dy_x_bound = (of.sum_dy_x_bound + kU * std::fabs(of.sum_dy_x)) * kSlack;
  }

  const SharedBatch& batch_;
  std::vector<Channel> channels_;
};

double distance(float a, float b) {
  return std::fabs(static_cast<double>(a) - static_cast<double>(b));
}

TEST_P(SyncBatchNormContract, IsWithinRoundingOfOneDevice) {
  for (const int size : world_sizes()) {
    const SharedBatch batch = make_batch(uneven_counts(size), draw_real);
    const Bounds bounds(batch);
    const Results expected = on_one_device(batch);
    const std::vector<Results> ranks = on_ranks(batch);
    const std::vector<float> y = joined(ranks, &Results::y), dx = joined(ranks, &Results::dx);
    ASSERT_EQ(y.size(), expected.y.size());
    ASSERT_EQ(dx.size(), expected.dx.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      EXPECT_LE(distance(y[i], expected.y[i]), bounds.y_bound(at, expected.y[i])) << size;
      EXPECT_LE(distance(dx[i], expected.dx[i]), bounds.dx_bound(at, expected.dx[i])) << size;
    }
    const double n = static_cast<double>(batch.samples() * kPositions);
    for (std::size_t c = 0; c < kChannels; ++c) {
      const Bounds::Channel& of = bounds.channel(static_cast<std::int64_t>(c));
      double weight = 0, bias = 0;
      for (const Results& rank : ranks) {
        EXPECT_EQ(rank.mean[c], ranks[0].mean[c]);
        EXPECT_EQ(rank.variance[c], ranks[0].variance[c]);
        weight += static_cast<double>(rank.weight_gradient[c]);
        bias += static_cast<double>(rank.bias_gradient[c]);
      }
      EXPECT_LE(distance(ranks[0].mean[c], expected.mean[c]), of.mean_bound);
      // Unbiased: times n / (n - 1), rounded once more on both sides.
      EXPECT_LE(distance(ranks[0].variance[c], expected.variance[c]),
                n / (n - 1) * (of.variance_bound + 2 * Bounds::kU * of.variance) * Bounds::kSlack);
      EXPECT_LE(std::fabs(weight - expected.weight_gradient[c]), of.sum_dy_x_bound);
      EXPECT_LE(std::fabs(bias - expected.bias_gradient[c]), of.sum_dy_bound);
    }
  }
}

TEST_P(SyncBatchNormContract, ParameterGradientsStayOnTheirRank) {
  for (const int size : world_sizes()) {
    const SharedBatch batch = make_batch(uneven_counts(size), draw_integer);
    const std::vector<Results> ranks = on_ranks(batch);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      std::vector<float> expected(kChannels, 0);
      const auto first = batch.dy.begin() + batch.first(static_cast<int>(r)) * kSample;
      for (std::int64_t i = 0; i < batch.counts[r] * kSample; ++i) {
        expected[static_cast<std::size_t>(i / kPositions % kChannels)] += first[i];
      }
      EXPECT_EQ(ranks[r].bias_gradient, expected) << r << " of " << size;
    }
  }
}

TEST_P(SyncBatchNormContract, EvaluationIsNoCollectiveCall) {
  for (const int size : world_sizes()) {
    run(size, [](RankContext& rank) {
      Cpu<float> device;
      SyncBatchNorm<float> layer(device, "bn1", kOptions, rank.group);
      layer.set_training(false);
      const Tensor<float> x(device, {2, kChannels, kPositions});
      if (rank.group.rank() == 0) layer.backward(layer.forward(x), {});
    });
  }
}

TEST_P(SyncBatchNormContract, NoSamplesAnywhereChangeNothing) {
  for (const int size : world_sizes()) {
    const SharedBatch batch =
        make_batch(std::vector<std::int64_t>(static_cast<std::size_t>(size), 0), draw_real);
    for (const Results& rank : on_ranks(batch)) {
      EXPECT_EQ(rank.mean, std::vector<float>(kChannels, 0));
      EXPECT_EQ(rank.variance, std::vector<float>(kChannels, 1));
    }
  }
}

TEST_P(SyncBatchNormContract, ASingleValuePerChannelOverAllRanksIsRefusedOnAll) {
  for (const int size : world_sizes()) {
    run(size, [](RankContext& rank) {
      Cpu<float> device;
      SyncBatchNorm<float> layer(device, "bn1", kOptions, rank.group);
      const std::int64_t mine = rank.group.rank() == 0 ? 1 : 0;
      const Tensor<float> x(device, {mine, kChannels});
      try {
        layer.forward(x);
        FAIL() << "expected ConfigError";
      } catch (const ConfigError& error) {
        EXPECT_EQ(std::string(error.what()),
                  "bn1: one value per channel in the whole batch, input shape [" +
                      std::to_string(mine) + ", 3] here; training needs at least two");
      }
    });
  }
}

}  // namespace
}  // namespace ddproof::contract
