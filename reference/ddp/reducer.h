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
//           A resumed run starts with that order, so that its sums keep their bits. With
//           find_unused_parameters (and no static graph) buckets are those of registration order
//           from the last to the first, and stay.
//   Bits    Each gradient is multiplied by the rounded reciprocal of the world size, then summed
//           (options.h has the other averaging, comm_hook.h other ways to reduce).
//   Missing A parameter without a gradient fails the same step, on all ranks (SEMANTICS D6), unless
//           the options allow it: the last bucket carries one more element that counts them.
//   Unused  Where allowed, a parameter that this rank did not reach sends zeros, or what it had
//           accumulated before. One that no rank reached keeps its gradient as it was.
//
// Source: PyTorch 1.13.1 Reducer, as described in SEMANTICS sections 3.1 to 3.5.
// Threads: one task at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/process_group.h"
#include "reference/compute/scalar.h"
#include "reference/ddp/agreement.h"
#include "reference/ddp/comm_hook.h"
#include "reference/ddp/gradient_buckets.h"
#include "reference/ddp/options.h"
#include "reference/ddp/step_timer.h"

namespace ddproof {

// What is known before a backward pass.
template <class T>
struct BackwardPlan {
  std::vector<Parameter<T>*> unused;  // backward will not reach them; others may be among them
  int divisor = 0;                    // ranks to average over; 0: all of the group
  std::int64_t samples = 0;           // of this rank, for Averaging::kSamples
};

template <class T>
class Reducer {
 public:
  // Requires: `parameters` and `group` outlive the reducer, and nobody else moves their gradients
  // while it lives, another reducer least of all; bucket_cap_bytes > 0 (ConfigError).
  // Of the options it uses those of buckets, unused parameters, static graph and averaging.
  Reducer(std::vector<Parameter<T>*> parameters, ProcessGroup& group, const DdpOptions& options);
  ~Reducer() { end_running_step(); }
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // From the next backward on, buckets go through `hook`. Requires: it outlives the reducer.
  void set_hook(CommHook<T>* hook) { hook_ = hook; }
  // Is told when communication begins. Requires: it outlives the reducer.
  void set_timer(StepTimer* timer) { timer_ = timer; }

  // Rebuilds the buckets once, after the first step. A collective call on that one occasion.
  void prepare_forward() {
    if (is_rebuilt() || keeps_buckets() || ready_order_.size() != parameters().size()) return;
    build_in_order(adopt_from_rank_zero(group_, ready_order_));
  }
  bool is_rebuilt() const { return !order_.empty(); }

  // The order of the parameters in the buckets, as indices: rank 0's is that of all ranks. Empty
  // before the first step, and where buckets are never rebuilt.
  const std::vector<std::size_t>& gradient_order() const {
    return is_rebuilt() || keeps_buckets() ? order_ : ready_order_;
  }

  // A collective call with Averaging::kSamples; may begin to reduce where parameters are unused.
  void prepare_backward(const BackwardPlan<T>& plan = {});

  // Requires: the parameter's gradient of this backward is complete. Throws ConfigError when the
  // parameter is not one of this reducer's, was marked ready before in this step, or its gradient
  // was moved out of its bucket.
  void mark_ready(const Parameter<T>& parameter);

  // Instead of mark_ready(), where backward only accumulates: the parameter counts as used in the
  // next step that is reduced.
  void note_used(const Parameter<T>& parameter) { used_[index_of(parameter)] = 1; }

  // Waits for all buckets: the gradients are now the means.
  // Throws ConfigError on all ranks when some rank has a parameter without a gradient that must
  // have one, or one that the first step of a static graph did not have; the errors of
  // ProcessGroup. The gradients are then unspecified.
  void finalize();

  // A step of a rank that has no more input: sends zeros where its peers send gradients, which then
  // lie in its own. Throws ConfigError for the first step of a static graph.
  void shadow_step(const BackwardPlan<T>& plan);

  // Parameter indices per bucket, in reduction order.
  std::vector<std::vector<std::size_t>> bucket_parameters() const {
    std::vector<std::vector<std::size_t>> result;
    for (const auto& bucket : buckets_.buckets()) result.push_back(bucket.indices);
    return result;
  }
  std::vector<std::int64_t> bucket_bytes() const {
    std::vector<std::int64_t> result;
    for (const auto& bucket : buckets_.buckets()) {
      result.push_back(bucket.gradients.count() * std::int64_t{sizeof(T)});
    }
    return result;
  }
  const std::vector<std::int64_t>& first_bucket_bytes() const { return first_bucket_bytes_; }
  // Of the last step on this rank, as indices.
  const std::vector<std::size_t>& ready_order() const { return ready_order_; }
  // In the last step: parameters that no rank reached.
  std::int64_t unused_count() const { return std::ranges::count(used_anywhere_, 0); }
  // Every step so far reached the same parameters on this rank.
  bool is_static_so_far() const { return is_static_so_far_; }

 private:
  const std::vector<Parameter<T>*>& parameters() const { return buckets_.parameters(); }
  bool keeps_buckets() const { return find_unused_ && !static_graph_; }
  bool is_learning() const { return static_graph_ && expected_reports_.empty(); }
  bool may_be_unused(std::size_t index) const {
    return find_unused_ || is_learning() || (static_graph_ && expected_reports_[index] == 0);
  }

  void build(const std::vector<std::vector<std::size_t>>& assignment) {
    buckets_.build(assignment);
    works_.assign(assignment.size(), nullptr);
    reset_step();
  }
  void build_at_first();
  void build_in_order(std::vector<std::size_t> order) {
    const std::int64_t limits[] = {kFirstBucketBytes, bucket_cap_bytes_};
    build(assign_buckets(buckets_.tensors(), limits, order).buckets);
    order_ = std::move(order);
  }

  void reset_step();
  void require_in_place(std::size_t index) const;
  // The gradient of parameter `index` may travel.
  void complete(std::size_t index);
  void complete_unused(std::size_t index);
  void clear(std::size_t index) {
    Tensor<T>& gradient = parameters()[index]->gradient;
    gradient.device().fill(gradient.data(), gradient.count(), T{});
  }
  void complete_the_rest();
  void launch_complete_buckets();
  void launch_next();
  GradientBucket<T> hooked(std::size_t at) {
    auto& bucket = buckets_.buckets()[at];
    return {at, at + 1 == works_.size(), bucket.gradients, bucket.parameters};
  }
  void write_problem_count();
  bool found_problems();
  void wait_for_buckets();
  void divide_by_samples();
  void settle_unused();
  [[noreturn]] void throw_problems();
  void end_running_step() noexcept;
  std::size_t index_of(const Parameter<T>& parameter) const;

  ProcessGroup& group_;
  const std::int64_t bucket_cap_bytes_;
  const bool find_unused_;
  const bool static_graph_;
  const Averaging averaging_;
  CommHook<T>* hook_ = nullptr;
  StepTimer* timer_ = nullptr;
  GradientBuckets<T> buckets_;
  std::vector<std::size_t> order_;  // that the buckets were rebuilt in; empty: not yet

  // Of the step that runs; by bucket or by parameter.
  std::vector<WorkPtr> works_;
  std::vector<std::size_t> pending_;
  std::size_t next_to_launch_ = 0;
  std::vector<bool> ready_;
  std::vector<std::size_t> ready_order_;
  std::vector<int> reports_;               // of a static graph: mark_ready() calls
  std::vector<std::uint8_t> unexpected_;   // of a static graph: reached, and should not have been
  std::map<std::size_t, Tensor<T>> kept_;  // gradients of unused parameters before the step
  int divisor_ = 0;
  std::vector<std::int64_t> samples_;  // one: this rank's, then all ranks'
  WorkPtr samples_work_;
  WorkPtr map_work_;

  std::vector<int> expected_reports_;        // of a static graph, from its first step; empty: none
  std::vector<std::int32_t> used_;           // since the last reduced step: reached on this rank
  std::vector<std::int32_t> used_anywhere_;  // in the last one: by how many ranks
  std::vector<std::int32_t> used_first_;     // in the first one
  bool is_static_so_far_ = true;
  std::vector<std::int64_t> first_bucket_bytes_;
};

template <class T>
Reducer<T>::Reducer(std::vector<Parameter<T>*> parameters, ProcessGroup& group,
                    const DdpOptions& options)
    : group_(group),
      bucket_cap_bytes_(options.bucket_cap_bytes),
      find_unused_(options.find_unused_parameters),
      static_graph_(options.static_graph),
      averaging_(options.averaging),
      buckets_(std::move(parameters)) {
  if (bucket_cap_bytes_ <= 0) {
    throw ConfigError("bucket cap is " + std::to_string(bucket_cap_bytes_) +
                      " bytes, must be at least 1");
  }
  if (this->parameters().empty()) {
    throw ConfigError("DistributedDataParallel needs at least one parameter with a gradient");
  }
  used_.assign(this->parameters().size(), 0);
  used_anywhere_.assign(this->parameters().size(), 1);
  if (options.gradient_order.empty() || keeps_buckets()) {
    build_at_first();
  } else {
    build_in_order(options.gradient_order);
  }
  first_bucket_bytes_ = bucket_bytes();
}

template <class T>
void Reducer<T>::build_at_first() {
  if (!keeps_buckets()) {
    const std::int64_t unlimited[] = {std::numeric_limits<std::int64_t>::max()};
    return build(assign_buckets(buckets_.tensors(), unlimited).buckets);
  }
  const std::int64_t limits[] = {kFirstBucketBytes, bucket_cap_bytes_};
  auto assignment = assign_buckets(buckets_.tensors(), limits).buckets;
  std::ranges::reverse(assignment);
  build(assignment);
}

template <class T>
void Reducer<T>::reset_step() {
  std::ranges::fill(works_, nullptr);
  samples_work_ = nullptr;
  map_work_ = nullptr;
  pending_.clear();
  for (const auto& bucket : buckets_.buckets()) pending_.push_back(bucket.indices.size());
  next_to_launch_ = 0;
  ready_.assign(parameters().size(), false);
  ready_order_.clear();
  reports_.assign(parameters().size(), 0);
  unexpected_.assign(parameters().size(), 0);
  kept_.clear();
}

template <class T>
void Reducer<T>::prepare_backward(const BackwardPlan<T>& plan) {
  reset_step();
  divisor_ = plan.divisor > 0 ? plan.divisor : group_.size();
  if (averaging_ == Averaging::kSamples) {
    samples_ = {plan.samples};
    samples_work_ = group_.all_reduce(Buffer::of(samples_), ReduceOp::kSum, {.label = "samples"});
  }
  if (!find_unused_ || static_graph_) return;
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    if (std::ranges::find(plan.unused, parameters()[i]) != plan.unused.end()) complete_unused(i);
  }
}

template <class T>
void Reducer<T>::mark_ready(const Parameter<T>& parameter) {
  const std::size_t index = index_of(parameter);
  used_[index] = 1;
  if (static_graph_) {
    const int reports = ++reports_[index];
    if (is_learning()) {
      if (reports == 1) ready_order_.push_back(index);
      return;  // nothing is reduced before it is known which report is the last
    }
    if (expected_reports_[index] == 0) {
      unexpected_[index] = 1;
      return;
    }
    if (reports < expected_reports_[index]) return;
  }
  if (ready_[index]) {
    throw ConfigError(group_.who() + " DistributedDataParallel: parameter " + parameter.name +
                      " became ready twice in one backward");
  }
  complete(index);
}

template <class T>
void Reducer<T>::require_in_place(std::size_t index) const {
  if (buckets_.is_in_place(index)) return;
  throw ConfigError(group_.who() + " DistributedDataParallel: the gradient of " +
                    parameters()[index]->name +
                    " is no longer in its bucket; wrap a module once at a time, and write into "
                    "gradients instead of replacing them");
}

template <class T>
void Reducer<T>::complete(std::size_t index) {
  require_in_place(index);
  ready_[index] = true;
  ready_order_.push_back(index);
  if (hook_ == nullptr && averaging_ == Averaging::kWorld) {
    Tensor<T>& gradient = parameters()[index]->gradient;
    gradient.device().scaled_copy(gradient.data(), gradient.data(), reciprocal_of<T>(divisor_),
                                  gradient.count());
  }
  --pending_[buckets_.bucket_of(index)];
  launch_complete_buckets();
}

template <class T>
void Reducer<T>::complete_unused(std::size_t index) {
  Parameter<T>& parameter = *parameters()[index];
  if (parameter.has_gradient) {
    Tensor<T> copy(parameter.gradient.device(), parameter.gradient.shape());
    copy.device().copy(copy.data(), parameter.gradient.data(), copy.count());
    kept_.emplace(index, std::move(copy));
  } else {
    clear(index);
  }
  complete(index);
}

template <class T>
void Reducer<T>::complete_the_rest() {
  if (is_learning()) {
    for (std::size_t index : std::exchange(ready_order_, {})) complete(index);
  }
  for (std::size_t index = 0; index < parameters().size(); ++index) {
    if (ready_[index]) continue;
    // A missing gradient must not send what an earlier step left in its place.
    may_be_unused(index) ? complete_unused(index) : clear(index);
  }
  while (next_to_launch_ < works_.size()) launch_next();
}

template <class T>
void Reducer<T>::launch_complete_buckets() {
  while (next_to_launch_ < works_.size() && pending_[next_to_launch_] == 0) launch_next();
}

template <class T>
void Reducer<T>::launch_next() {
  const std::size_t at = next_to_launch_++;
  if (at == 0 && timer_ != nullptr) timer_->communication_begins();
  if (hook_ != nullptr) return hook_->start(hooked(at), group_);
  if (at + 1 == works_.size()) write_problem_count();
  works_[at] = group_.all_reduce(buckets_.buckets()[at].memory.buffer(), ReduceOp::kSum,
                                 {.label = "bucket " + std::to_string(at)});
}

template <class T>
void Reducer<T>::finalize() {
  complete_the_rest();
  if (find_unused_ || is_learning()) {
    used_anywhere_ = used_;
    map_work_ =
        group_.all_reduce(Buffer::of(used_anywhere_), ReduceOp::kSum, {.label = "used parameters"});
  }
  wait_for_buckets();
  if (map_work_) map_work_->wait();
  if (found_problems()) throw_problems();
  if (averaging_ == Averaging::kSamples) divide_by_samples();
  if (is_learning()) expected_reports_ = reports_;
  if (find_unused_ || static_graph_) settle_unused();
  if (used_first_.empty()) used_first_ = used_;
  is_static_so_far_ = is_static_so_far_ && used_ == used_first_;
  std::ranges::fill(used_, 0);
}

template <class T>
void Reducer<T>::wait_for_buckets() {
  for (std::size_t i = 0; i < works_.size(); ++i) {
    hook_ != nullptr ? hook_->finish(hooked(i), group_) : works_[i]->wait();
  }
  if (hook_ == nullptr) return;
  write_problem_count();
  group_
      .all_reduce(buckets_.extra_element().buffer(), ReduceOp::kSum,
                  {.label = "missing gradients of " + hook_->name()})
      ->wait();
}

template <class T>
void Reducer<T>::divide_by_samples() {
  samples_work_->wait();
  if (samples_[0] == 0) return;  // nobody had any: the gradients are zero
  for (auto& bucket : buckets_.buckets()) {
    Tensor<T>& sum = bucket.gradients;
    sum.device().scaled_copy(sum.data(), sum.data(), reciprocal_of<T>(samples_[0]), sum.count());
  }
}

template <class T>
void Reducer<T>::settle_unused() {
  for (std::size_t index = 0; index < parameters().size(); ++index) {
    Parameter<T>& parameter = *parameters()[index];
    if (used_anywhere_[index] > 0) {
      parameter.has_gradient = true;
    } else if (const auto kept = kept_.find(index); kept != kept_.end()) {
      const Tensor<T>& before = kept->second;
      before.device().copy(parameter.gradient.data(), before.data(), before.count());
    }
  }
}

template <class T>
void Reducer<T>::shadow_step(const BackwardPlan<T>& plan) {
  if (is_learning()) {
    throw ConfigError(group_.who() +
                      " DistributedDataParallel: with static_graph a rank needs input for at least "
                      "one step before it may run out of it");
  }
  prepare_backward(plan);
  std::ranges::fill(used_, 0);
  for (std::size_t index = 0; index < parameters().size(); ++index) {
    clear(index);
    complete(index);
  }
  finalize();
}

template <class T>
void Reducer<T>::write_problem_count() {
  const auto count = std::ranges::count(ready_, false) + std::ranges::count(unexpected_, 1);
  Tensor<T> element = buckets_.extra_element();
  element.device().fill(element.data(), 1, from_integer<T>(count));
}

template <class T>
bool Reducer<T>::found_problems() {
  if (keeps_buckets()) return false;  // nothing is a problem: nor is there one to wait for
  return !(to_host(buckets_.extra_element())[0] == T{});
}

template <class T>
void Reducer<T>::throw_problems() {
  const std::size_t count = parameters().size();
  std::vector<std::uint8_t> flags(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    flags[i] = ready_[i] ? 0 : 1;
    flags[count + i] = unexpected_[i];
  }
  const RankFlags found = gather_flags(group_, flags);
  const std::string who = group_.who() + " DistributedDataParallel: ";
  const std::string& name = parameters()[found.first_index % count]->name;
  const std::string rank = " on rank " + std::to_string(found.first_rank);
  if (found.first_index >= count) {
    throw ConfigError(who + name + rank +
                      " has a gradient in this step and had none in the first, but static_graph "
                      "is set; unset it, or use find_unused_parameters");
  }
  throw ConfigError(who + "no gradient in this step for " + name + rank + " (" +
                    std::to_string(found.count) +
                    " missing over all ranks); every parameter must take part in every step" +
                    (static_graph_ ? " that took part in the first (static_graph)" : ""));
}

// A half-done step: aborts the group, so that peers learn of it at once and no running all-reduce
// touches the buckets any more.
template <class T>
void Reducer<T>::end_running_step() noexcept {
  std::vector<WorkPtr> works = works_;
  works.push_back(samples_work_);
  works.push_back(map_work_);
  bool aborted = false;
  for (const WorkPtr& work : works) {
    try {
      if (!work || work->is_completed()) continue;
      if (!std::exchange(aborted, true)) group_.abort();
      work->wait();
    } catch (...) {  // expected after an abort; a rank that dies ends each of its calls
    }
  }
}

template <class T>
std::size_t Reducer<T>::index_of(const Parameter<T>& parameter) const {
  const auto found = std::ranges::find(parameters(), &parameter);
  if (found == parameters().end()) {
    throw ConfigError("DistributedDataParallel: " + parameter.name +
                      " is not a parameter of the wrapped module");
  }
  return static_cast<std::size_t>(found - parameters().begin());
}

}  // namespace ddproof
