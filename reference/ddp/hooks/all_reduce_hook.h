// The mean over ranks as a hook: what the reducer does by itself, for hooks that begin or end with
// it. Each gradient is multiplied by the rounded reciprocal of the group's size, then summed.
// Source: PyTorch 1.13.1 allreduce_hook (SEMANTICS section 6). Threads: one task at a time.
#pragma once

#include <map>
#include <string>

#include "reference/compute/scalar.h"
#include "reference/ddp/comm_hook.h"

namespace ddproof {

template <class T>
class AllReduceHook final : public CommHook<T> {
 public:
  std::string name() const override { return "allreduce"; }

  // Over any group: the part of a world, too.
  void start(const GradientBucket<T>& bucket, ProcessGroup& group) override {
    Tensor<T>& data = bucket.data;
    data.device().scaled_copy(data.data(), data.data(), reciprocal_of<T>(group.size()),
                              data.count());
    works_[bucket.index] =
        group.all_reduce(data.buffer(), ReduceOp::kSum,
                         {.label = "bucket " + std::to_string(bucket.index) + " of " + name()});
  }
  void finish(const GradientBucket<T>& bucket, ProcessGroup&) override {
    works_.at(bucket.index)->wait();
  }

 private:
  std::map<std::size_t, WorkPtr> works_;  // by bucket
};

}  // namespace ddproof
