// A data set that is read from front to back: a log, a pipe, files one after another. And its
// shards: which samples of a stream each rank, and each loader worker of a rank, takes.
//
// Every worker of every rank reads the whole stream and keeps its own part, so all of them must
// read the same samples in the same order. Sample number p of the stream goes to rank p mod R, and
// the k-th sample of a rank to its worker k mod K: taking a rank's workers in turn gives the rank's
// samples in the stream's order, however many workers there are. What a rank gets is what
// DistributedSampler deals without shuffle, for the same tail.
//
// Threads: a stream belongs to one task at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/compute/tensor.h"
#include "reference/data/dataset.h"
#include "reference/data/distributed_sampler.h"
#include "reference/data/tail.h"

namespace ddproof {

class SampleStream {
 public:
  virtual ~SampleStream() = default;
  // Of one sample, without the batch. At least one value.
  virtual const Shape& sample_shape() const = 0;
  // Of one sample's labels, as Dataset::label_shape().
  virtual const Shape& label_shape() const = 0;
  // Samples from the front to the end; empty when only the end can tell.
  virtual std::optional<std::int64_t> length() const = 0;
  // Writes the next sample and its labels, and returns its number: what a random transform is keyed
  // by. Empty at the end, and again when called again.
  // Requires: values.size() is element_count(sample_shape()), labels.size() that of label_shape().
  virtual std::optional<std::int64_t> next(std::span<float> values,
                                           std::span<std::int64_t> labels) = 0;
};

// Samples of a data set in the order of a list; a sample's number is its index.
class ListedSamples final : public SampleStream {
 public:
  // Requires: `dataset` outlives this. Throws ConfigError when an index is not in the data set.
  ListedSamples(const Dataset& dataset, IndexList indices);

  const Shape& sample_shape() const override { return dataset_.sample_shape(); }
  const Shape& label_shape() const override { return dataset_.label_shape(); }
  std::optional<std::int64_t> length() const override { return indices_.size(); }
  std::optional<std::int64_t> next(std::span<float> values,
                                   std::span<std::int64_t> labels) override;

  // The same for place 0, 1, ... of the list. From any number of tasks at once.
  std::optional<std::int64_t> read(std::int64_t place, std::span<float> values,
                                   std::span<std::int64_t> labels) const;

 private:
  const Dataset& dataset_;
  const IndexList indices_;
  std::int64_t next_ = 0;
};

struct ShardOptions {
  int replicas = 1;
  int rank = 0;
  // Between ranks, at the end of the stream. Between a rank's workers samples are always kept: one
  // of them may get one more than another.
  //   kPad:  needs the first samples again, so up to `rank` of them stay in memory
  //   kDrop: a sample comes out once its round is known to be full, up to R-1 samples later
  Tail tail = Tail::kPad;
  int workers = 1;  // of each rank
  int worker = 0;
};

class ShardedStream final : public SampleStream {
 public:
  // Requires: `source` outlives this, stands at its front and is read by nobody else.
  // Throws ConfigError when replicas or workers < 1, or rank or worker are not below them.
  ShardedStream(SampleStream& source, const ShardOptions& options);

  const Shape& sample_shape() const override { return source_.sample_shape(); }
  const Shape& label_shape() const override { return source_.label_shape(); }
  // This worker's samples; empty when the source's length is.
  std::optional<std::int64_t> length() const override;
  // A sample's number is the source's. Throws what the source threw, and DataError when the source
  // has not the length it told; then there is nothing more to ask for.
  std::optional<std::int64_t> next(std::span<float> values,
                                   std::span<std::int64_t> labels) override;

 private:
  struct Sample {
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    std::int64_t number = 0;
  };

  bool is_mine(std::int64_t place) const;
  bool read();
  static std::int64_t give(const Sample& sample, std::span<float> values,
                           std::span<std::int64_t> labels);
  std::optional<std::int64_t> fill_up(std::span<float> values, std::span<std::int64_t> labels);

  SampleStream& source_;
  const ShardOptions options_;
  std::int64_t position_ = 0;  // samples read from the source
  bool ended_ = false;
  std::vector<Sample> front_;  // what may be repeated at the end
  Sample read_;
  Sample mine_;
};

}  // namespace ddproof
