// Reads samples in batches, ahead of the consumer, into host memory: a data set's samples by a list
// of indices, or a stream as it comes.
//
// The order and the bits are those of reading without prefetch: one task reads the batches one
// after another into a bounded queue. An exception in it reaches the consumer after the batches
// before it. Threads: next() from one task at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
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
  // Batches read ahead, in a task of their own; 0 reads each when it is asked for.
  int prefetch = 2;
};

struct HostBatch {
  std::int64_t size = 0;  // samples
  std::vector<float> values;
  std::vector<std::int64_t> labels;  // those of the first sample, of the second, ...
};

class BatchReader {
 public:
  // Requires: `runtime` and `dataset` outlive the reader.
  // Throws ConfigError when batch_size < 1, prefetch < 0, there would be no batch at all, or an
  // index is not in the data set.
  BatchReader(Runtime& runtime, const Dataset& dataset, IndexList indices,
              const DataLoaderOptions& options);
  // Reads `stream` to its end. Requires: it outlives the reader, and nobody else reads it. Throws
  // the same; a stream of unknown length that holds no batch is found out by the first next().
  BatchReader(Runtime& runtime, SampleStream& stream, const DataLoaderOptions& options);
  // May be called at any time; waits for the batch that is being read.
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
  bool read(HostBatch& batch);
  void read_ahead();
  bool make_room(HostBatch& batch);
  bool take(HostBatch& batch);

  Runtime& runtime_;
  std::unique_ptr<ListedSamples> listed_;  // null: the stream is the caller's
  SampleStream& stream_;
  const DataLoaderOptions options_;
  std::optional<std::int64_t> batch_count_;  // empty: unknown before the end
  std::int64_t batches_read_ = 0;            // by whoever calls read()

  std::unique_ptr<Monitor> monitor_;
  // Guarded by monitor_, where there is one:
  std::deque<HostBatch> ready_;
  std::vector<HostBatch> spare_;
  std::exception_ptr error_;
  bool ended_ = false;  // nothing is added to ready_ any more
  bool stopped_ = false;

  std::unique_ptr<Task> task_;
};

}  // namespace ddproof
