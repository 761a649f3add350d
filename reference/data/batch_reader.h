// Reads samples in batches, ahead of the consumer, into host memory: a data set's samples by a list
// of indices, or a stream as it comes.
//
// The order and the bits are those of reading without workers: each of them, a task of its own,
// takes the next batch that nobody has begun, and batches are handed out by their number. No more
// are held than `workers` times `prefetch`. An exception reaches the consumer after the batches
// before it. Threads: next() from one task at a time.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "backends/api/runtime.h"
#include "reference/data/augmentation.h"
#include "reference/data/dataset.h"
#include "reference/data/distributed_sampler.h"
#include "reference/data/sample_stream.h"

namespace ddproof {

struct DataLoaderOptions {
  std::int64_t batch_size = 1;  // of this rank
  // Leaves out a last batch that is not full. Acts on this rank's samples: after the split.
  bool drop_last = false;
  SampleTransform transform;  // empty: samples stay as the data set has them
  // Tasks that read ahead, each a batch; 0 reads a batch when it is asked for. A stream has a front
  // that only one can read.
  int workers = 1;
  int prefetch = 2;  // batches read ahead for each of them; 0: as no workers
};

struct HostBatch {
  std::int64_t size = 0;  // samples
  std::vector<float> values;
  std::vector<std::int64_t> labels;  // those of the first sample, of the second, ...
};

class BatchReader {
 public:
  // Requires: `runtime` and `dataset` outlive the reader.
  // Throws ConfigError when batch_size < 1, workers or prefetch < 0, there would be no batch at
  // all, or an index is not in the data set; what Runtime::spawn() throws.
  BatchReader(Runtime& runtime, const Dataset& dataset, IndexList indices,
              const DataLoaderOptions& options);
  // Reads `stream` to its end. Requires: it outlives the reader, and nobody else reads it. Throws
  // the same, also ConfigError for several workers; a stream of unknown length that holds no batch
  // is found out by the first next().
  BatchReader(Runtime& runtime, SampleStream& stream, const DataLoaderOptions& options);
  // May be called at any time; waits for the batches that are being read.
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Requires: the length is known, as a data set's always is.
  std::int64_t batch_count() const { return batch_count_.value(); }

  // Replaces `batch` by the next one; false at the end. Throws what reading it threw, and again
  // when called again. Reuses the memory of `batch`.
  bool next(HostBatch& batch);

 private:
  void check_and_start();
  void stop();
  std::optional<std::int64_t> read_sample(std::int64_t place, std::span<float> values,
                                          std::span<std::int64_t> labels);
  bool read(std::int64_t number, HostBatch& batch);
  void read_ahead();
  std::optional<std::int64_t> begin_batch(HostBatch& batch);
  void end_at(std::int64_t number, std::exception_ptr error);
  bool take(HostBatch& batch);

  Runtime& runtime_;
  std::unique_ptr<ListedSamples> listed_;  // null: the stream is the caller's
  SampleStream& stream_;
  const DataLoaderOptions options_;
  std::optional<std::int64_t> batch_count_;  // empty: unknown before the end

  std::unique_ptr<Monitor> monitor_;
  // Guarded by monitor_, where there is one:
  std::int64_t next_to_read_ = 0;
  std::int64_t next_to_take_ = 0;
  std::map<std::int64_t, HostBatch> ready_;  // by number
  std::vector<HostBatch> spare_;
  std::optional<std::int64_t> end_;  // the first batch that there is not
  std::exception_ptr error_;         // why not; null: the samples are used up
  bool stopped_ = false;

  std::vector<std::unique_ptr<Task>> tasks_;
};

}  // namespace ddproof
