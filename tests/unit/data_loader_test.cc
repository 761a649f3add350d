// The loader: order and bits never depend on workers and prefetch, errors arrive, nothing hangs.
#include "reference/data/data_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "reference/compute/cpu.h"
#include "reference/data/memory_dataset.h"

namespace ddproof {
namespace {

// Sample i is {i, i + 0.5}, its label i % 3.
TensorDataset numbers(std::int64_t size) {
  std::vector<float> values;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>(i));
    values.push_back(static_cast<float>(i) + 0.5f);
    labels.push_back(i % 3);
  }
  return TensorDataset({2}, 3, std::move(values), std::move(labels));
}

IndexList first(std::uint32_t count) {
  IndexList::Narrow indices(count);
  std::iota(indices.begin(), indices.end(), 0u);
  return IndexList(std::move(indices));
}

class FailsAt final : public Dataset {
 public:
  explicit FailsAt(std::int64_t index) : index_(index) {}
  std::int64_t size() const override { return 100; }
  const Shape& sample_shape() const override { return shape_; }
  int class_count() const override { return 1; }
  std::uint64_t digest() const override { return 0; }
  void read(std::int64_t index, std::span<float> values,
            std::span<std::int64_t> labels) const override {
    if (index == index_) throw std::runtime_error("sample 5 is broken");
    values[0] = 0;
    labels[0] = 0;
  }

 private:
  Shape shape_{1};
  std::int64_t index_;
};

struct Loaded {
  std::vector<std::vector<float>> values;
  std::vector<std::vector<std::int64_t>> labels;
  bool operator==(const Loaded&) const = default;
};

Loaded load_all(const Dataset& data, const IndexList& indices, const DataLoaderOptions& options) {
  OsRuntime runtime;
  Cpu<float> device;
  DataLoader<float> loader(runtime, device, data, indices, options);
  Loaded loaded;
  while (const Batch<float>* batch = loader.next()) {
    EXPECT_EQ(batch->input.shape(), (Shape{batch->size(), 2}));
    loaded.values.emplace_back(batch->input.span().begin(), batch->input.span().end());
    loaded.labels.push_back(batch->labels);
  }
  EXPECT_EQ(loader.next(), nullptr);
  EXPECT_EQ(static_cast<std::int64_t>(loaded.labels.size()), loader.batch_count());
  return loaded;
}

std::string error_of(std::uint32_t samples, const DataLoaderOptions& options) {
  OsRuntime runtime;
  const TensorDataset data = numbers(4);
  try {
    BatchReader reader(runtime, data, first(samples), options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(DataLoader, TheLastBatchIsShort) {
  const Loaded loaded = load_all(numbers(5), first(5), {.batch_size = 2});
  EXPECT_EQ(loaded.values,
            (std::vector<std::vector<float>>{{0, 0.5, 1, 1.5}, {2, 2.5, 3, 3.5}, {4, 4.5}}));
  EXPECT_EQ(loaded.labels, (std::vector<std::vector<std::int64_t>>{{0, 1}, {2, 0}, {1}}));
}

TEST(DataLoader, DropLastLeavesTheShortBatchOut) {
  EXPECT_EQ(load_all(numbers(5), first(5), {.batch_size = 2, .drop_last = true}).labels.size(), 2u);
}

TEST(DataLoader, WorkersAndPrefetchChangeNeitherOrderNorBits) {
  const TensorDataset data = numbers(101);
  DistributedSampler sampler({.length = 101, .replicas = 2, .rank = 1, .seed = 3});
  const IndexList indices = sampler.indices();
  const Loaded plain = load_all(data, indices, {.batch_size = 4, .prefetch = 0});
  for (const int workers : {0, 1, 2, 3, 20}) {
    for (const int prefetch : {1, 2, 7, 100}) {
      EXPECT_EQ(
          load_all(data, indices, {.batch_size = 4, .workers = workers, .prefetch = prefetch}),
          plain);
    }
  }
}

TEST(DataLoader, OtherScalarsGetTheSameValues) {
  OsRuntime runtime;
  Cpu<double> device;
  const TensorDataset data = numbers(3);
  DataLoader<double> loader(runtime, device, data, first(3), {.batch_size = 3});
  const Batch<double>* batch = loader.next();
  EXPECT_EQ(std::vector<double>(batch->input.span().begin(), batch->input.span().end()),
            (std::vector<double>{0, 0.5, 1, 1.5, 2, 2.5}));
}

TEST(DataLoader, AnErrorArrivesAfterTheBatchesBeforeIt) {
  OsRuntime runtime;
  const FailsAt data(5);
  for (const int workers : {0, 1, 2, 4}) {
    BatchReader reader(runtime, data, first(10), {.batch_size = 2, .workers = workers});
    HostBatch batch;
    EXPECT_TRUE(reader.next(batch));
    EXPECT_TRUE(reader.next(batch));
    EXPECT_THROW(reader.next(batch), std::runtime_error);
    EXPECT_THROW(reader.next(batch), std::runtime_error);
  }
}

TEST(DataLoader, MayBeDestroyedAtAnyTime) {
  OsRuntime runtime;
  const TensorDataset data = numbers(100);
  for (int used = 0; used < 5; ++used) {
    BatchReader reader(runtime, data, first(100), {.batch_size = 1, .workers = 1 + used});
    HostBatch batch;
    for (int i = 0; i < used; ++i) reader.next(batch);
  }
}

// neural-graphics-model-gym#147: less data than a batch, with drop: PyTorch silently trains
// nothing.
TEST(DataLoader, NoBatchAtAllIsAnError) {
  EXPECT_EQ(
      error_of(1, {.batch_size = 8, .drop_last = true}),
      "loader: 0 batches from 1 samples of this rank with batch size 8 and drop_last; use more "
      "data, fewer ranks or a smaller batch");
  EXPECT_EQ(error_of(0, {.batch_size = 8}),
            "loader: 0 batches from 0 samples of this rank with batch size 8; use more data, fewer "
            "ranks or a smaller batch");
}

TEST(DataLoader, RefusesBadSettings) {
  EXPECT_EQ(error_of(4, {.batch_size = 0}), "loader batch size 0: expected at least 1");
  EXPECT_EQ(error_of(4, {.batch_size = -3}), "loader batch size -3: expected at least 1");
  EXPECT_EQ(error_of(4, {.prefetch = -1}), "loader prefetch -1: expected at least 0");
  EXPECT_EQ(error_of(4, {.workers = -1}), "loader workers -1: expected at least 0");
  EXPECT_EQ(error_of(5, {}),
            "loader: sample 4 of a data set of 4; give the sampler the data set's length");
}

TEST(DataLoader, AHugeBatchSizeTakesNoMemory) {
  EXPECT_EQ(load_all(numbers(3), first(3), {.batch_size = std::int64_t{1} << 62}).labels.size(),
            1u);
}

// Megatron-Bridge#5527: a fixed window over a short tail gives one rank an empty batch.
TEST(DataLoader, AllRanksGetEquallyManyBatchesOfEqualSizes) {
  const TensorDataset data = numbers(5);
  std::vector<std::vector<std::size_t>> sizes;
  for (int rank = 0; rank < 2; ++rank) {
    DistributedSampler sampler({.length = 5, .replicas = 2, .rank = rank});
    sizes.emplace_back();
    for (const auto& labels : load_all(data, sampler.indices(), {.batch_size = 2}).labels) {
      sizes.back().push_back(labels.size());
    }
  }
  EXPECT_EQ(sizes[0], (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(sizes[1], sizes[0]);
}

// Randomness that is keyed by the sample, not by the rank: P11's other cure.
TEST(DataLoader, ASampleIsAugmentedAlikeAtEveryWorldSize) {
  const TensorDataset data = numbers(12);
  // Any transform that depends on the index alone; the real one takes images.
  const DataLoaderOptions options{.batch_size = 1,
                                  .transform = [](std::int64_t index, std::span<float> values) {
                                    values[1] += 100.0F * static_cast<float>(index);
                                  }};
  const auto all_of = [&](int replicas) {
    std::vector<std::vector<float>> samples;
    for (int rank = 0; rank < replicas; ++rank) {
      DistributedSampler sampler({.length = 12, .replicas = replicas, .rank = rank});
      const Loaded loaded = load_all(data, sampler.indices(), options);
      samples.insert(samples.end(), loaded.values.begin(), loaded.values.end());
    }
    std::ranges::sort(samples);
    return samples;
  };
  const auto alone = all_of(1);
  ASSERT_EQ(alone.size(), 12u);
  EXPECT_EQ(alone[3], (std::vector<float>{3, 303.5F}));
  EXPECT_EQ(all_of(3), alone);
}

TEST(LocalBatchSize, DividesTheGlobalBatch) { EXPECT_EQ(local_batch_size(64, 4), 16); }

// open-instruct#1144: 4 // 8 = 0.
TEST(LocalBatchSize, RefusesWhatDoesNotDivide) {
  for (const std::int64_t global : {4, 0, -8, 12}) {
    EXPECT_THROW(local_batch_size(global, 8), ConfigError) << global;
  }
  try {
    local_batch_size(4, 8);
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "global batch size 4: expected a multiple of the world size 8, at least one sample "
        "a rank");
  }
  EXPECT_THROW(local_batch_size(4, 0), ConfigError);
}

}  // namespace
}  // namespace ddproof
