// Another way to reduce a bucket of gradients than an all-reduce: compressed, seldom, or a user's.
//
// The reducer calls start() for each bucket, in bucket order, the moment it is complete, while
// backward goes on; then, when backward has ended, finish() for each, in bucket order. A hook may
// post collectives in both: all ranks call them in the same order.
// The bucket holds this rank's gradients, NOT divided by anything: a hook averages as it likes.
// After finish() the bucket's data are the gradients that every rank goes on with; left alone, each
// rank keeps its own.
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/api/process_group.h"
#include "reference/model/module.h"

namespace ddproof {

template <class T>
struct GradientBucket {
  std::size_t index = 0;
  bool is_last = false;
  // All gradients of the bucket, one after another, each also the view parameters[i]->gradient.
  Tensor<T>& data;
  const std::vector<Parameter<T>*>& parameters;
};

template <class T>
class CommHook {
 public:
  virtual ~CommHook() = default;
  // Part of the collectives' labels, so that ranks with different hooks are told apart.
  virtual std::string name() const = 0;
  virtual void start(const GradientBucket<T>& bucket, ProcessGroup& group) = 0;
  virtual void finish(const GradientBucket<T>& bucket, ProcessGroup& group) = 0;

 protected:
  // For the collectives that a hook posts for a bucket: "bucket 3 of NAME".
  std::string label(const GradientBucket<T>& bucket) const {
    return "bucket " + std::to_string(bucket.index) + " of " + name();
  }
};

}  // namespace ddproof
