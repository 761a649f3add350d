// Averages gradients over ranks, bucket by bucket, while backward goes on.
//
// Life of a step:  prepare_forward() -> forward -> prepare_backward() -> backward, which calls
// mark_ready() for each parameter -> finalize(). After finalize() every gradient is the mean over
// ranks, with the same bits on all ranks.
//
// Invariants:
//   Order   Buckets are launched strictly in bucket order 0, 1, 2, ..., the moment a bucket and all
//           before it are complete, so that all ranks post the same sequence of all-reduces.
//   Layout  The first iteration uses one bucket in registration order. Before the second forward
//           the buckets are rebuilt once, in the order in which rank 0's gradients became ready.
//           A resumed run starts with that order, so that its sums keep their bits.
//   Views   Every parameter's gradient lies in its bucket, so that nothing is copied in or out
//           (PyTorch's gradient_as_bucket_view). A rebuild moves it, and its values with it; when
//           the reducer goes away, each gradient gets memory of its own again.
//   Bits    Each gradient is multiplied by the rounded reciprocal of the world size, then summed.
//   Missing A parameter without a gradient fails the same step, on all ranks (SEMANTICS D6): the
//           last bucket carries one more element that counts what is missing.
//
// Source: PyTorch 1.13.1 Reducer, as described in SEMANTICS sections 3.1 to 3.4.
// Threads: one task at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/process_group.h"
#include "reference/compute/scalar.h"
#include "reference/ddp/agreement.h"
#include "reference/ddp/buckets.h"
#include "reference/model/module.h"

namespace ddproof {

template <class T>
class Reducer {
 public:
  // Requires: `parameters` and `group` outlive the reducer, and nobody else moves their gradients
  // while it lives, another reducer least of all; bucket_cap_bytes > 0 (ConfigError).
  // `gradient_order`: that of an earlier reducer, the same on all ranks; empty: not known yet.
  Reducer(std::vector<Parameter<T>*> parameters, ProcessGroup& group, std::int64_t bucket_cap_bytes,
          std::vector<std::size_t> gradient_order = {})
      : parameters_(std::move(parameters)), group_(group), bucket_cap_bytes_(bucket_cap_bytes) {
    if (bucket_cap_bytes <= 0) {
      throw ConfigError("bucket cap is " + std::to_string(bucket_cap_bytes) +
                        " bytes, must be at least 1");
    }
    if (parameters_.empty()) {
      throw ConfigError("DistributedDataParallel needs at least one parameter with a gradient");
    }
    if (!gradient_order.empty()) {
      build_in_order(std::move(gradient_order));
      return;
    }
    const std::int64_t unlimited[] = {std::numeric_limits<std::int64_t>::max()};
    build(assign_buckets(tensors(), unlimited));
  }

  ~Reducer() {
    try {
      end_running_step();
    } catch (...) {  // a rank that dies ends each of its calls
    }
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!is_in_place(i)) continue;
      const Tensor<T>& value = parameters_[i]->value;
      move_gradient(*parameters_[i], Tensor<T>(value.device(), value.shape()));
    }
  }
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Rebuilds the buckets once, after the first step. A collective call on that one occasion.
  void prepare_forward() {
    if (!order_.empty() || ready_order_.size() != parameters_.size()) return;
    build_in_order(adopt_from_rank_zero(group_, ready_order_));
  }

  // The order of the parameters in the buckets, as indices: rank 0's is that of all ranks. Empty
  // before the first step.
  const std::vector<std::size_t>& gradient_order() const {
    return order_.empty() ? ready_order_ : order_;
  }

  void prepare_backward() {
    ready_order_.clear();
    ready_.assign(parameters_.size(), false);
    next_to_launch_ = 0;
    for (Bucket& bucket : buckets_) {
      bucket.pending = bucket.parameters.size();
      bucket.work = nullptr;
    }
  }

  // Requires: the parameter's gradient of this backward is complete. Throws ConfigError when the
  // parameter is not one of this reducer's, was marked ready before in this step, or its gradient
  // was moved out of its bucket.
  void mark_ready(const Parameter<T>& parameter) {
    const std::size_t index = index_of(parameter);
    if (ready_[index]) {
      throw ConfigError(group_.who() + " DistributedDataParallel: parameter " + parameter.name +
                        " became ready twice in one backward");
    }
    if (!is_in_place(index)) {
      throw ConfigError(group_.who() + " DistributedDataParallel: the gradient of " +
                        parameter.name +
                        " is no longer in its bucket; wrap a module once at a time, and write into "
                        "gradients instead of replacing them");
    }
    ready_[index] = true;
    ready_order_.push_back(index);
    Tensor<T>& gradient = parameters_[index]->gradient;
    gradient.device().scaled_copy(gradient.data(), gradient.data(), reciprocal_of<T>(group_.size()),
                                  gradient.count());
    --buckets_[places_[index].bucket].pending;
    launch_complete_buckets();
  }

  // Waits for all buckets: the gradients are now the means.
  // Throws ConfigError on all ranks when some rank has a parameter without a gradient; the errors
  // of ProcessGroup. The gradients are then unspecified.
  void finalize() {
    clear_missing_gradients();
    while (next_to_launch_ < buckets_.size()) launch_next();
    for (Bucket& bucket : buckets_) bucket.work->wait();
    if (!(read_missing_count() == T{})) throw_missing();
  }

  // Parameter indices per bucket, in reduction order.
  std::vector<std::vector<std::size_t>> bucket_parameters() const {
    std::vector<std::vector<std::size_t>> result;
    for (const Bucket& bucket : buckets_) result.push_back(bucket.parameters);
    return result;
  }

 private:
  struct Bucket {
    std::vector<std::size_t> parameters;
    Tensor<T> data;  // their gradients; in the last bucket one more element, the missing count
    std::size_t pending = 0;
    WorkPtr work;
  };
  struct Place {
    std::size_t bucket = 0;
    T* data = nullptr;  // where the gradient begins in its bucket
  };

  std::vector<BucketTensor> tensors() const {
    std::vector<BucketTensor> result;
    for (const Parameter<T>* parameter : parameters_) {
      result.push_back(
          {.bytes = parameter->value.count() * std::int64_t{sizeof(T)}, .type = element_of<T>()});
    }
    return result;
  }

  // A half-done step: aborts the group, so that peers learn of it at once and no running all-reduce
  // touches the buckets any more.
  void end_running_step() {
    const auto running = [](Bucket& bucket) { return bucket.work && !bucket.work->is_completed(); };
    if (std::ranges::none_of(buckets_, running)) return;
    group_.abort();
    for (Bucket& bucket : buckets_) {
      if (!running(bucket)) continue;
      try {
        bucket.work->wait();
      } catch (const CommError&) {  // expected after an abort; the step has failed already
      }
    }
  }

  void build_in_order(std::vector<std::size_t> order) {
    const std::int64_t limits[] = {kFirstBucketBytes, bucket_cap_bytes_};
    build(assign_buckets(tensors(), limits, order));
    order_ = std::move(order);
  }

  void build(const BucketAssignment& assignment) {
    std::vector<Bucket> buckets = make_buckets(assignment);
    places_.assign(parameters_.size(), {});
    ready_.assign(parameters_.size(), false);
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      T* place = buckets[i].data.data();
      for (std::size_t index : buckets[i].parameters) {
        Parameter<T>& parameter = *parameters_[index];
        places_[index] = {i, place};
        move_gradient(parameter,
                      Tensor<T>::view(parameter.value.device(), place, parameter.value.shape()));
        place += parameter.value.count();
      }
    }
    buckets_ = std::move(buckets);  // only now: the gradients were in the old ones
    prepare_backward();
  }

  std::vector<Bucket> make_buckets(const BucketAssignment& assignment) const {
    std::vector<Bucket> result;
    for (const std::vector<std::size_t>& indices : assignment.buckets) {
      const bool is_last = result.size() + 1 == assignment.buckets.size();
      std::int64_t count = is_last ? 1 : 0;
      for (std::size_t index : indices) count += parameters_[index]->value.count();
      result.push_back(
          {.parameters = indices, .data = Tensor<T>(parameters_[0]->value.device(), {count})});
    }
    return result;
  }

  bool is_in_place(std::size_t index) const {
    return parameters_[index]->gradient.data() == places_[index].data;
  }

  static void move_gradient(Parameter<T>& parameter, Tensor<T> place) {
    place.device().copy(place.data(), parameter.gradient.data(), place.count());
    parameter.gradient = std::move(place);
  }

  std::size_t index_of(const Parameter<T>& parameter) const {
    const auto found = std::ranges::find(parameters_, &parameter);
    if (found == parameters_.end()) {
      throw ConfigError("DistributedDataParallel: " + parameter.name +
                        " is not a parameter of the wrapped module");
    }
    return static_cast<std::size_t>(found - parameters_.begin());
  }

  void launch_complete_buckets() {
    while (next_to_launch_ < buckets_.size() && buckets_[next_to_launch_].pending == 0) {
      launch_next();
    }
  }

  void launch_next() {
    Bucket& bucket = buckets_[next_to_launch_];
    if (next_to_launch_ + 1 == buckets_.size()) write_missing_count();
    bucket.work = group_.all_reduce(bucket.data.buffer(), ReduceOp::kSum,
                                    {.label = "bucket " + std::to_string(next_to_launch_)});
    ++next_to_launch_;
  }

  // A missing gradient must not send what an earlier step left in its place.
  void clear_missing_gradients() {
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      if (ready_[index]) continue;
      Tensor<T>& gradient = parameters_[index]->gradient;
      gradient.device().fill(gradient.data(), gradient.count(), T{});
    }
  }

  T* missing_count() {
    Tensor<T>& data = buckets_.back().data;
    return data.data() + data.count() - 1;
  }

  void write_missing_count() {
    const auto missing = std::ranges::count(ready_, false);
    Device<T>& device = buckets_.back().data.device();
    device.fill(missing_count(), 1, from_integer<T>(missing));
  }

  T read_missing_count() {
    T value{};
    buckets_.back().data.device().copy_to_host(&value, missing_count(), 1);
    return value;
  }

  [[noreturn]] void throw_missing() {
    std::vector<std::uint8_t> missing(parameters_.size());
    for (std::size_t i = 0; i < missing.size(); ++i) missing[i] = ready_[i] ? 0 : 1;
    const RankFlags flags = gather_flags(group_, missing);
    throw ConfigError(group_.who() + " DistributedDataParallel: no gradient in this step for " +
                      parameters_[flags.first_index]->name + " on rank " +
                      std::to_string(flags.first_rank) + " (" + std::to_string(flags.count) +
                      " missing over all ranks); every parameter must take part in every step");
  }

  std::vector<Parameter<T>*> parameters_;
  ProcessGroup& group_;
  std::int64_t bucket_cap_bytes_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by parameter
  std::vector<bool> ready_;    // by parameter
  std::vector<std::size_t> ready_order_;
  std::size_t next_to_launch_ = 0;
  std::vector<std::size_t> order_;  // that the buckets were rebuilt in; empty: not yet
};

}  // namespace ddproof
