// DistributedDataParallel: a module whose gradients are averaged over the ranks of a group.
//
//   DistributedDataParallel<float> ddp(model, group, {});
//   const auto& output = ddp.forward(input);
//   ddp.backward(loss_gradient, {});   // returns with averaged gradients on every rank
//   optimizer.step();
//
// The constructor compares the models of all ranks and gives every rank the parameters and buffers
// of rank 0. While backward goes on, each bucket of gradients is reduced as soon as it is complete.
//
// A step is reduced unless no_sync() was called before its forward. Buffers: before the forward
// after a reduced step, all ranks take those of rank 0; at the end of a step they differ.
// Source: PyTorch 1.13.1, as described in SEMANTICS sections 2 to 5. Threads: one task at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/process_group.h"
#include "reference/ddp/coalesced_broadcast.h"
#include "reference/ddp/join.h"
#include "reference/ddp/logging_data.h"
#include "reference/ddp/model_check.h"
#include "reference/ddp/options.h"
#include "reference/ddp/reducer.h"
#include "reference/model/module.h"

namespace ddproof {

template <class T>
class DistributedDataParallel : public Module<T> {
 public:
  // A collective call. Requires: `module` and `group` outlive this.
  // Throws ConfigError on all ranks when the models or the options differ, when there is no
  // parameter to reduce, or parameters_to_ignore has a name that the module does not.
  DistributedDataParallel(Module<T>& module, ProcessGroup& group, const DdpOptions& options);

  // May be a collective call: once the buckets are rebuilt; buffers are sent; join().
  const Tensor<T>& forward(const Tensor<T>& input) override;

  // A collective call, but within no_sync(). `ready` is called for each parameter before its
  // gradient is reduced. Throws ConfigError on all ranks when a parameter got no gradient on some
  // rank; on this one when no forward belongs to it, no_sync() began or ended between forward and
  // backward, or samples were to be counted and were not.
  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override;

  // While the result lives, steps only accumulate gradients on their rank. The next step without
  // reduces all of it. Must hold on all ranks alike, and from forward to backward.
  class [[nodiscard]] NoSync {
   public:
    explicit NoSync(DistributedDataParallel& ddp)
        : ddp_(ddp), before_(std::exchange(ddp.synchronises_, false)) {}
    ~NoSync() { ddp_.synchronises_ = before_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DistributedDataParallel& ddp_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*this); }

  // For Averaging::kSamples, before each backward: the gradients that it adds are sums over so many
  // samples. Requires: count >= 0.
  void count_samples(std::int64_t count) { counted_ = count; }

  // Runs `body`, in which ranks may make different numbers of steps: a rank that has run out of
  // input goes through the motions of its peers' steps, with zeros, until nobody has input. Then
  // all ranks take the state of one that made the last step. A collective call.
  // Throws what `body` throws; ConfigError on all ranks as JoinOptions says.
  void join(const JoinOptions& options, const std::function<void()>& body);

  // Reduces buckets by `hook` instead of an all-reduce. The same on all ranks. Throws ConfigError
  // when there is one already, after the first backward, and with another averaging than kWorld.
  void register_comm_hook(std::unique_ptr<CommHook<T>> hook);

  void set_training(bool training) override {
    training_ = training;
    module_.set_training(training);
  }
  void set_input_gradient_needed(bool needed) override {
    module_.set_input_gradient_needed(needed);
  }
  std::vector<Parameter<T>*> parameters() override { return module_.parameters(); }
  std::vector<Parameter<T>*> unused_parameters() override { return module_.unused_parameters(); }
  std::vector<ModuleBuffer<T>*> buffers() override { return module_.buffers(); }

  const Reducer<T>& reducer() const { return *reducer_; }
  // What PyTorch's logger knows. Times are there when DdpOptions::runtime is set.
  DdpLoggingData logging_data() const;

 private:
  void choose_parameters(const std::vector<std::string>& ignored);
  void require_agreement();
  void broadcast_state(int root);
  void synchronise_before_forward(bool has_input);
  void check_backward() const;
  const Tensor<T>& accumulate(const Tensor<T>& output_gradient, const GradientReady<T>& ready);
  BackwardPlan<T> plan();
  void end_reduced_step();
  void shadow_peers();

  Module<T>& module_;
  ProcessGroup& group_;
  const DdpOptions options_;
  std::vector<Parameter<T>*> reduced_;  // the module's, without the ignored ones
  std::set<const Parameter<T>*> ignored_;
  std::vector<Tensor<T>*> shared_buffers_;
  std::unique_ptr<CommHook<T>> hook_;  // outlives the reducer, as does the timer
  std::optional<StepTimer> timer_;
  std::optional<Reducer<T>> reducer_;
  std::optional<Join> join_;  // within join()
  bool joined_before_ = false;
  bool training_ = true;
  bool synchronises_ = true;
  bool forward_synchronises_ = true;     // as it was at the last forward
  bool backward_may_follow_ = false;     // a forward has no backward yet
  bool buffers_may_differ_ = false;      // a step was reduced since the last broadcast
  std::int64_t iterations_ = 0;          // reduced steps
  std::optional<std::int64_t> counted_;  // samples of the next backward
  std::int64_t samples_ = 0;             // since the last reduced step
};

template <class T>
DistributedDataParallel<T>::DistributedDataParallel(Module<T>& module, ProcessGroup& group,
                                                    const DdpOptions& options)
    : module_(module), group_(group), options_(options) {
  choose_parameters(options.parameters_to_ignore);
  require_agreement();
  if (options.runtime != nullptr) timer_.emplace(*options.runtime);
  reducer_.emplace(reduced_, group, options);
  if (timer_) reducer_->set_timer(&*timer_);
  broadcast_state(0);
}

template <class T>
void DistributedDataParallel<T>::choose_parameters(const std::vector<std::string>& ignored) {
  const auto is_ignored = [&](const std::string& name) {
    return std::ranges::find(ignored, name) != ignored.end();
  };
  std::vector<std::string> names;
  for (Parameter<T>* parameter : module_.parameters()) {
    names.push_back(parameter->name);
    is_ignored(parameter->name) ? void(ignored_.insert(parameter)) : reduced_.push_back(parameter);
  }
  for (ModuleBuffer<T>* buffer : module_.buffers()) {
    names.push_back(buffer->name);
    if (!is_ignored(buffer->name)) shared_buffers_.push_back(&buffer->value);
  }
  require_known_names(ignored, names);
}

template <class T>
void DistributedDataParallel<T>::require_agreement() {
  require_same_options(group_, options_);
  std::vector<ParameterInfo> model;
  const std::string type(element_of<T>().name());
  for (const Parameter<T>* parameter : reduced_) {
    model.push_back({parameter->name, type, parameter->value.shape()});
  }
  for (const ModuleBuffer<T>* buffer : module_.buffers()) {
    model.push_back({buffer->name, type + " buffer", buffer->value.shape()});
  }
  require_same_model(group_, model);
}

template <class T>
void DistributedDataParallel<T>::broadcast_state(int root) {
  std::vector<Tensor<T>*> state;
  for (Parameter<T>* parameter : reduced_) state.push_back(&parameter->value);
  state.insert(state.end(), shared_buffers_.begin(), shared_buffers_.end());
  broadcast_coalesced(group_, state, root, "model");
  buffers_may_differ_ = false;
}

template <class T>
const Tensor<T>& DistributedDataParallel<T>::forward(const Tensor<T>& input) {
  if (timer_) timer_->forward_begins();
  if (join_) join_->announce_step(true);
  synchronise_before_forward(true);
  if (join_) join_->any_rank(synchronises_, "join: is the step reduced");
  forward_synchronises_ = synchronises_;
  backward_may_follow_ = true;
  return module_.forward(input);
}

// What ranks without input do as well.
template <class T>
void DistributedDataParallel<T>::synchronise_before_forward(bool has_input) {
  if (training_) reducer_->prepare_forward();
  if (!options_.broadcast_buffers || shared_buffers_.empty() || !buffers_may_differ_) return;
  // Told apart, so that evaluation on one rank alone is a mismatch with its name.
  const char* label = training_ ? "buffers" : "buffers for evaluation";
  broadcast_coalesced(group_, shared_buffers_, join_ ? join_->authority(has_input) : 0, label);
  buffers_may_differ_ = false;
}

template <class T>
void DistributedDataParallel<T>::check_backward() const {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(group_.who() + " DistributedDataParallel: " + what);
  };
  if (!backward_may_follow_) refuse("backward without a forward of its own");
  if (forward_synchronises_ != synchronises_) {
    refuse("no_sync() began or ended between forward and backward; keep both in it, or neither");
  }
  if (options_.averaging == Averaging::kSamples && !counted_) {
    refuse("averages over samples; call count_samples() before each backward");
  }
}

template <class T>
const Tensor<T>& DistributedDataParallel<T>::backward(const Tensor<T>& output_gradient,
                                                      const GradientReady<T>& ready) {
  check_backward();
  backward_may_follow_ = false;
  samples_ += std::exchange(counted_, std::nullopt).value_or(0);
  if (!synchronises_) return accumulate(output_gradient, ready);
  if (timer_) timer_->backward_begins();
  reducer_->prepare_backward(plan());
  const Tensor<T>& input_gradient = module_.backward(output_gradient, [&](Parameter<T>& parameter) {
    if (ready) ready(parameter);
    if (!ignored_.contains(&parameter)) reducer_->mark_ready(parameter);
  });
  if (timer_) timer_->backward_computed();
  reducer_->finalize();
  end_reduced_step();
  return input_gradient;
}

template <class T>
const Tensor<T>& DistributedDataParallel<T>::accumulate(const Tensor<T>& output_gradient,
                                                        const GradientReady<T>& ready) {
  return module_.backward(output_gradient, [&](Parameter<T>& parameter) {
    if (ready) ready(parameter);
    if (!ignored_.contains(&parameter)) reducer_->note_used(parameter);
  });
}

template <class T>
BackwardPlan<T> DistributedDataParallel<T>::plan() {
  BackwardPlan<T> plan{.unused = {}, .divisor = group_.size(), .samples = samples_};
  if (options_.find_unused_parameters) plan.unused = module_.unused_parameters();
  if (join_) plan.divisor = join_->divisor();
  return plan;
}

template <class T>
void DistributedDataParallel<T>::end_reduced_step() {
  if (timer_) timer_->communication_ended();
  ++iterations_;
  samples_ = 0;
  buffers_may_differ_ = true;
}

template <class T>
void DistributedDataParallel<T>::join(const JoinOptions& options,
                                      const std::function<void()>& body) {
  if (!options.enable) return body();
  require_same_settings(group_, settings_of(options),
                        "call join() with the same options on every rank");
  join_.emplace(group_, options);
  joined_before_ = true;
  try {
    body();
    shadow_peers();
  } catch (...) {
    join_.reset();
    throw;
  }
  join_.reset();
}

template <class T>
void DistributedDataParallel<T>::shadow_peers() {
  bool made_last_step = true;
  while (join_->announce_step(false) > 0) {
    made_last_step = false;
    synchronise_before_forward(false);
    if (!join_->any_rank(false, "join: is the step reduced")) continue;
    reducer_->shadow_step({.unused = {}, .divisor = join_->divisor(), .samples = 0});
    end_reduced_step();
  }
  broadcast_state(join_->authority(made_last_step));
}

template <class T>
void DistributedDataParallel<T>::register_comm_hook(std::unique_ptr<CommHook<T>> hook) {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(group_.who() + " DistributedDataParallel: " + what);
  };
  if (hook_) refuse("has the hook " + hook_->name() + " already; one wrapper takes one hook");
  if (iterations_ > 0) refuse("register the hook " + hook->name() + " before the first backward");
  if (options_.averaging != Averaging::kWorld) {
    refuse("the hook " + hook->name() + " averages by itself; leave Averaging::kWorld");
  }
  hook_ = std::move(hook);
  reducer_->set_hook(hook_.get());
}

template <class T>
DdpLoggingData DistributedDataParallel<T>::logging_data() const {
  DdpLoggingData data;
  data.describe_group(group_);
  data.describe_options(options_);
  std::int64_t bytes = 0;
  for (const Parameter<T>* parameter : reduced_) {
    bytes += parameter->value.count() * std::int64_t{sizeof(T)};
  }
  data.integers["iteration"] = iterations_;
  data.integers["num_parameter_tensors"] = static_cast<std::int64_t>(reduced_.size());
  data.integers["total_parameter_size_bytes"] = bytes;
  data.strings["dtypes"] = element_of<T>().name();
  data.describe_buckets(*reducer_);
  if (hook_) data.strings["comm_hook"] = hook_->name();
  if (joined_before_) data.integers["join_uneven_inputs"] = 1;
  if (timer_) data.describe_times(*timer_);
  return data;
}

}  // namespace ddproof
