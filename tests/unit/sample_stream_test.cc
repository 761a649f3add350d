// Sharded streams by example, and batches read from them.
#include "reference/data/sample_stream.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "reference/compute/cpu.h"
#include "reference/data/data_loader.h"

namespace ddproof {
namespace {

using Numbers = std::vector<std::int64_t>;

// Sample p holds p; its label is p.
class Lines final : public SampleStream {
 public:
  explicit Lines(std::int64_t size, std::optional<std::int64_t> told = std::nullopt)
      : size_(size), told_(told) {}

  const Shape& sample_shape() const override { return shape_; }
  const Shape& label_shape() const override { return label_shape_; }
  std::optional<std::int64_t> length() const override { return told_; }
  std::optional<std::int64_t> next(std::span<float> values,
                                   std::span<std::int64_t> labels) override {
    if (next_ == size_) return std::nullopt;
    values[0] = static_cast<float>(next_);
    labels[0] = next_;
    return next_++;
  }

 private:
  std::int64_t size_;
  std::optional<std::int64_t> told_;
  Shape shape_{1};
  Shape label_shape_;
  std::int64_t next_ = 0;
};

Numbers drain(SampleStream& stream) {
  Numbers numbers;
  std::vector<float> values(1);
  std::vector<std::int64_t> labels(1);
  while (const auto number = stream.next(values, labels)) numbers.push_back(*number);
  return numbers;
}

std::vector<Numbers> all_ranks(std::int64_t size, ShardOptions options) {
  std::vector<Numbers> ranks;
  for (options.rank = 0; options.rank < options.replicas; ++options.rank) {
    Lines lines(size);
    ShardedStream shard(lines, options);
    ranks.push_back(drain(shard));
  }
  return ranks;
}

// P15: N=6, W=2.
TEST(ShardedStream, DealsItsSamplesInTurn) {
  EXPECT_EQ(all_ranks(6, {.replicas = 2}), (std::vector<Numbers>{{0, 2, 4}, {1, 3, 5}}));
}

TEST(ShardedStream, TheTailIsPaddedDroppedOrKept) {
  EXPECT_EQ(all_ranks(7, {.replicas = 2, .tail = Tail::kPad}),
            (std::vector<Numbers>{{0, 2, 4, 6}, {1, 3, 5, 0}}));
  EXPECT_EQ(all_ranks(7, {.replicas = 2, .tail = Tail::kDrop}),
            (std::vector<Numbers>{{0, 2, 4}, {1, 3, 5}}));
  EXPECT_EQ(all_ranks(7, {.replicas = 2, .tail = Tail::kKeep}),
            (std::vector<Numbers>{{0, 2, 4, 6}, {1, 3, 5}}));
}

TEST(ShardedStream, MoreRanksThanSamplesGoRoundTheFront) {
  EXPECT_EQ(all_ranks(3, {.replicas = 7}),
            (std::vector<Numbers>{{0}, {1}, {2}, {0}, {1}, {2}, {0}}));
  EXPECT_EQ(all_ranks(0, {.replicas = 3}), std::vector<Numbers>(3));
}

TEST(ShardedStream, DealsToWorkersWhatItsRankGets) {
  std::vector<Numbers> workers;
  for (int worker = 0; worker < 2; ++worker) {
    Lines lines(13);
    ShardedStream shard(lines, {.replicas = 2, .rank = 1, .workers = 2, .worker = worker});
    workers.push_back(drain(shard));
  }
  EXPECT_EQ(workers, (std::vector<Numbers>{{1, 5, 9, 0}, {3, 7, 11}}));
}

TEST(ShardedStream, TellsItsLengthWhereTheSourceDoes) {
  Lines lines(7, 7);
  EXPECT_EQ(ShardedStream(lines, {.replicas = 2, .rank = 1}).length(), 4);
  EXPECT_EQ(ShardedStream(lines, {.replicas = 2, .rank = 1, .tail = Tail::kKeep}).length(), 3);
  Lines unknown(7);
  EXPECT_EQ(ShardedStream(unknown, {.replicas = 2}).length(), std::nullopt);
}

template <class Error, class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ShardedStream, ALengthThatWasNotTrueIsAnError) {
  for (int rank = 0; rank < 2; ++rank) {
    Lines shorter(5, 6);
    ShardedStream shard(shorter, {.replicas = 2, .rank = rank});
    EXPECT_EQ(error_of<DataError>([&] { drain(shard); }),
              "stream: ends after 5 samples, its length is 6; give it the length that it has, or "
              "none");
    Lines longer(9, 6);
    ShardedStream other(longer, {.replicas = 2, .rank = rank});
    EXPECT_EQ(error_of<DataError>([&] { drain(other); }),
              "stream: goes on after 6 samples, its length is 6; give it the length that it has, "
              "or none");
  }
}

TEST(ShardedStream, RefusesAPlaceThatIsNotThere) {
  Lines lines(5);
  const auto refused = [&](const ShardOptions& options) {
    return error_of<ConfigError>([&] { ShardedStream shard(lines, options); });
  };
  EXPECT_EQ(refused({.replicas = 0}), "shard replicas 0: expected at least 1");
  EXPECT_EQ(refused({.replicas = 2, .rank = 2}), "shard rank 2: expected 0 to 1 (2 replicas)");
  EXPECT_EQ(refused({.replicas = 2, .rank = -1}), "shard rank -1: expected 0 to 1 (2 replicas)");
  EXPECT_EQ(refused({.workers = 0}), "shard workers 0: expected at least 1");
  EXPECT_EQ(refused({.workers = 3, .worker = 3}), "shard worker 3: expected 0 to 2 (3 workers)");
}

std::vector<Numbers> batches_of(SampleStream& stream, const DataLoaderOptions& options) {
  OsRuntime runtime;
  BatchReader reader(runtime, stream, options);
  std::vector<Numbers> batches;
  HostBatch batch;
  while (reader.next(batch)) {
    EXPECT_EQ(batch.values, std::vector<float>(batch.labels.begin(), batch.labels.end()));
    batches.push_back(batch.labels);
  }
  EXPECT_FALSE(reader.next(batch));
  return batches;
}

// P15: N=7, W=2, b=2, and the tail is kept: 7 distinct.
TEST(StreamBatches, KeepTheTail) {
  for (const int prefetch : {0, 1, 3}) {
    std::vector<std::vector<Numbers>> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      Lines lines(7);
      ShardedStream shard(lines, {.replicas = 2, .rank = rank, .tail = Tail::kKeep});
      ranks.push_back(batches_of(shard, {.batch_size = 2, .prefetch = prefetch}));
    }
    EXPECT_EQ(ranks, (std::vector<std::vector<Numbers>>{{{0, 2}, {4, 6}}, {{1, 3}, {5}}}));
  }
}

TEST(StreamBatches, DropLastLeavesTheShortBatchOut) {
  Lines lines(7);
  EXPECT_EQ(batches_of(lines, {.batch_size = 2, .drop_last = true}),
            (std::vector<Numbers>{{0, 1}, {2, 3}, {4, 5}}));
}

TEST(StreamBatches, AreTransformedByTheNumberInTheWholeStream) {
  OsRuntime runtime;
  Cpu<float> device;
  Lines lines(4);
  ShardedStream shard(lines, {.replicas = 2, .rank = 1});
  DataLoader<float> loader(runtime, device, shard,
                           {.batch_size = 2, .transform = [](std::int64_t number, auto values) {
                              values[0] += 100.0F * static_cast<float>(number);
                            }});
  const Batch<float>* batch = loader.next();
  EXPECT_EQ(std::vector<float>(batch->input.span().begin(), batch->input.span().end()),
            (std::vector<float>{101, 303}));
}

TEST(StreamBatches, AreCountedWhereTheLengthIsKnown) {
  OsRuntime runtime;
  Lines lines(7, 7);
  EXPECT_EQ(BatchReader(runtime, lines, {.batch_size = 2, .prefetch = 0}).batch_count(), 4);
}

TEST(StreamBatches, AreReadByOneWorker) {
  OsRuntime runtime;
  Lines lines(7, 7);
  EXPECT_EQ(
      error_of<ConfigError>([&] { BatchReader(runtime, lines, {.batch_size = 2, .workers = 2}); }),
      "loader workers 2: expected 0 or 1, who read a stream");
}

// P14, where only the end can tell.
TEST(StreamBatches, NoBatchAtAllIsAnError) {
  OsRuntime runtime;
  for (const int prefetch : {0, 2}) {
    Lines lines(3);
    BatchReader reader(runtime, lines, {.batch_size = 8, .drop_last = true, .prefetch = prefetch});
    HostBatch batch;
    EXPECT_EQ(error_of<ConfigError>([&] { reader.next(batch); }),
              "loader: 0 batches from 3 samples of this rank with batch size 8 and drop_last; use "
              "more data, fewer ranks or a smaller batch");
  }
}

class BreaksOnce final : public SampleStream {
 public:
  const Shape& sample_shape() const override { return shape_; }
  const Shape& label_shape() const override { return label_shape_; }
  std::optional<std::int64_t> length() const override { return std::nullopt; }
  std::optional<std::int64_t> next(std::span<float> values,
                                   std::span<std::int64_t> labels) override {
    if (++calls_ == 4) throw std::runtime_error("line 3 is broken");
    values[0] = 0;
    labels[0] = 0;
    return calls_ - 1;
  }

 private:
  Shape shape_{1};
  Shape label_shape_;
  std::int64_t calls_ = 0;
};

// A batch that lost a sample to an error must not come out later.
TEST(StreamBatches, EndWithTheFirstError) {
  OsRuntime runtime;
  for (const int prefetch : {0, 2}) {
    BreaksOnce lines;
    BatchReader reader(runtime, lines, {.batch_size = 2, .prefetch = prefetch});
    HostBatch batch;
    EXPECT_TRUE(reader.next(batch));
    EXPECT_THROW(reader.next(batch), std::runtime_error);
    EXPECT_THROW(reader.next(batch), std::runtime_error);
  }
}

}  // namespace
}  // namespace ddproof
