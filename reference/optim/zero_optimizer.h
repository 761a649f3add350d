// An optimizer whose state is divided over the ranks of a group: each rank keeps the state of its
// share of the parameters, updates those, and sends them to the others (ZeRO stage 1, PyTorch's
// ZeroRedundancyOptimizer).
//
//   ZeroOptimizer<float> optimizer(std::make_unique<Sgd<float>>(parameters, options), group);
//   optimizer.step();          // after DDP's backward, on all ranks
//   optimizer.consolidate(0);  // before rank 0 saves
//
// Invariants: parameters have the bits that the wrapped optimizer would give them on every rank,
// since one rank does its very arithmetic and the others copy. Tensors are never cut, so a state
// fits any world size.
// Not within DistributedDataParallel::join(): a rank that has run out of input makes no steps, so
// its share would stay behind; ranks that are checked name the call that it lacks. Threads: one
// task at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/process_group.h"
#include "reference/optim/optimizer.h"
#include "reference/optim/zero_partition.h"

namespace ddproof {

template <class T>
class ZeroOptimizer final : public Optimizer<T> {
 public:
  // Requires: `group` outlives this; the ranks' parameters are equal, their optimizers alike and
  // without state.
  ZeroOptimizer(std::unique_ptr<Optimizer<T>> optimizer, ProcessGroup& group)
      : Optimizer<T>("ZeroOptimizer", optimizer->parameters()),
        optimizer_(std::move(optimizer)),
        group_(group) {
    std::vector<std::int64_t> counts;
    for (const Parameter<T>* parameter : this->parameters()) {
      counts.push_back(parameter->value.count());
    }
    owners_ = partition_parameters(counts, group.size());
  }

  std::string_view name() const override { return optimizer_->name(); }

  // By parameter, the rank that keeps its state.
  const std::vector<int>& owners() const { return owners_; }

  // A collective call. Requires: the same gradients on all ranks.
  void step() override {
    forget_others();
    Optimizer<T>::step();
    std::vector<WorkPtr> works;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      Parameter<T>& parameter = *this->parameters()[i];
      if (!parameter.has_gradient) continue;
      works.push_back(
          group_.broadcast(parameter.value.buffer(), owners_[i], {.label = parameter.name}));
    }
    for (const WorkPtr& work : works) work->wait();
  }

  // Only where this rank owns it.
  void update(std::size_t i) override {
    if (owns(i)) optimizer_->update(i);
  }

  double learning_rate() const override { return optimizer_->learning_rate(); }
  void set_learning_rate(double lr) override { optimizer_->set_learning_rate(lr); }
  StateLayout state_layout() const override { return optimizer_->state_layout(); }

  // Throws ConfigError where this rank has its part only: it had no consolidate() since the last
  // step or load_state().
  const std::vector<ParameterState<T>>& state() const override {
    if (!is_complete_) {
      throw ConfigError(group_.who() +
                        " ZeroOptimizer: this rank keeps the state of its own parameters only; "
                        "call consolidate(" +
                        std::to_string(group_.rank()) + ") on all ranks first");
    }
    return optimizer_->state();
  }

  std::vector<ParameterState<T>> take_state() override {
    state();
    return optimizer_->take_state();
  }

  // Keeps what this rank owns.
  void load_state(std::vector<ParameterState<T>> state) override {
    optimizer_->load_state(std::move(state));
    forget_others();
  }

  // A collective call: `rank` has the whole state until the next step.
  void consolidate(int rank) override {
    if (group_.size() == 1) return;
    const std::vector<std::int64_t> sizes = gather_sizes();
    std::vector<ParameterState<T>> states = optimizer_->take_state();
    std::vector<WorkPtr> works;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (owners_[i] == rank) continue;
      if (owns(i)) {
        for (Tensor<T>& tensor : states[i].tensors) {
          works.push_back(group_.send(tensor.buffer(), rank, 0, {.label = kLabel}));
        }
      } else if (group_.rank() == rank) {
        receive(i, sizes[2 * i], states[i], works);
        states[i].updates = sizes[2 * i + 1];
      }
    }
    optimizer_->load_state(std::move(states));  // before a wait that may throw
    for (const WorkPtr& work : works) work->wait();
    if (group_.rank() == rank) is_complete_ = true;
  }

 private:
  static constexpr const char* kLabel = "optimizer state";

  bool owns(std::size_t i) const { return owners_[i] == group_.rank(); }

  // Of each parameter's state, as its owner has it: the number of tensors, and of updates.
  std::vector<std::int64_t> gather_sizes() {
    const std::vector<ParameterState<T>>& states = optimizer_->state();
    std::vector<std::int64_t> sizes(2 * states.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!owns(i)) continue;
      sizes[2 * i] = static_cast<std::int64_t>(states[i].tensors.size());
      sizes[2 * i + 1] = states[i].updates;
    }
    group_.all_reduce(Buffer::of(sizes), ReduceOp::kSum, {.label = kLabel})->wait();
    return sizes;
  }

  void receive(std::size_t i, std::int64_t tensors, ParameterState<T>& state,
               std::vector<WorkPtr>& works) {
    const Tensor<T>& value = this->parameters()[i]->value;
    state.tensors.clear();
    for (std::int64_t t = 0; t < tensors; ++t) {
      state.tensors.emplace_back(value.device(), value.shape());
    }
    for (Tensor<T>& tensor : state.tensors) {
      works.push_back(group_.recv(tensor.buffer(), owners_[i], 0, {.label = kLabel}));
    }
  }

  // Gives back what consolidate() or load_state() brought.
  void forget_others() {
    is_complete_ = group_.size() == 1;
    if (is_complete_) return;
    std::vector<ParameterState<T>> states = optimizer_->take_state();
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (!owns(i)) states[i] = {};
    }
    optimizer_->load_state(std::move(states));
  }

  std::unique_ptr<Optimizer<T>> optimizer_;
  ProcessGroup& group_;
  std::vector<int> owners_;
  bool is_complete_ = true;  // before the first step there is none
};

}  // namespace ddproof
