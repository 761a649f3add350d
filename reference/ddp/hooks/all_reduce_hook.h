// The mean over ranks as a hook: what the reducer does by itself, for hooks that begin or end with
// it. Each gradient is multiplied by the rounded reciprocal of the group's size, then summed.
// Source: PyTorch 1.13.1 allreduce_hook (SEMANTICS section 6). Threads: one task at a time.
#pragma once

#include <map>
#include <string>

#include "reference/compute/scalar.h"
#include "reference/ddp/comm_hook.h"

namespace ddproof {

// Posts the all-reduce that makes `data` the mean over the group. Requires: `data` lives until the
// work is done.
template <class T>
WorkPtr start_mean(Tensor<T>& data, ProcessGroup& group, const std::string& label) {
  data.device().scaled_copy(data.data(), data.data(), reciprocal_of<T>(group.size()), data.count());
  return group.all_reduce(data.buffer(), ReduceOp::kSum, {.label = label});
}

template <class T>
class AllReduceHook final : public CommHook<T> {
 public:
  std::string name() const override { return "allreduce"; }

  // Over any group: the part of a world, too.
  void start(const GradientBucket<T>& bucket, ProcessGroup& group) override {
    works_[bucket.index] = start_mean(bucket.data, group, this->label(bucket));
  }
  void finish(const GradientBucket<T>& bucket, ProcessGroup&) override {
    works_.at(bucket.index)->wait();
  }

 private:
  std::map<std::size_t, WorkPtr> works_;  // by bucket
};

}  // namespace ddproof
