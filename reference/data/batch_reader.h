// Reads a list of samples in batches, ahead of the consumer, into host memory.
//
// The order and the bits are those of reading without prefetch: one task reads the batches one
// after another into a bounded queue. An exception in it reaches the consumer after the batches
// before it. Threads: next() from one task at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

#include "backends/api/runtime.h"
#include "reference/data/augmentation.h"
#include "reference/data/dataset.h"
#include "reference/data/distributed_sampler.h"

namespace ddproof {

struct DataLoaderOptions {
  std::int64_t batch_size = 1;  // of this rank
  // Leaves out a last batch that is not full. Acts on this rank's list: after the sampler's split.
  bool drop_last = false;
  SampleTransform transform;  // empty: samples stay as the data set has them
  // Batches read ahead, in a task of their own; 0 reads each when it is asked for.
  int prefetch = 2;
};

struct HostBatch {
  std::vector<float> values;  // labels.size() samples
  std::vector<std::int64_t> labels;
};

class BatchReader {
 public:
  // Requires: `runtime` and `dataset` outlive the reader.
  // Throws ConfigError when batch_size < 1, prefetch < 0, there would be no batch at all, or an
  // index is not in the data set.
  BatchReader(Runtime& runtime, const Dataset& dataset, IndexList indices,
              const DataLoaderOptions& options);
  // May be called at any time; waits for the batch that is being read.
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  std::int64_t batch_count() const { return batch_count_; }

  // Replaces `batch` by the next one; false at the end. Throws what reading it threw, and again
  // when called again. Reuses the memory of `batch`.
  bool next(HostBatch& batch);

 private:
  void read(std::int64_t number, HostBatch& batch) const;
  void read_ahead();
  bool make_room(HostBatch& batch);
  void take(HostBatch& batch);

  Runtime& runtime_;
  const Dataset& dataset_;
  const IndexList indices_;
  const DataLoaderOptions options_;
  std::int64_t batch_count_ = 0;
  std::int64_t next_batch_ = 0;  // of the consumer

  std::unique_ptr<Monitor> monitor_;
  // Guarded by monitor_:
  std::deque<HostBatch> ready_;
  std::vector<HostBatch> spare_;
  std::exception_ptr error_;
  bool stopped_ = false;

  std::unique_ptr<Task> task_;
};

}  // namespace ddproof
