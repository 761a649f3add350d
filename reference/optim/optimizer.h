// An optimizer: updates parameters from their gradients, and says what it must keep to go on.
//
//   optimizer.step();                                   // after backward
//   for (const ParameterState<T>& s : optimizer.state()) ...   // for a checkpoint
//
// Invariants: a parameter without a gradient in this pass is skipped, its state included, as
// PyTorch skips grad None; the state of a parameter depends on its own updates alone.
// Implementations: Sgd<T>, Adam<T>; ZeroOptimizer<T>, which divides another one's state over ranks.
// Threads: one task at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/api/check.h"
#include "backends/api/error.h"
#include "reference/compute/tensor.h"
#include "reference/model/module.h"

namespace ddproof {

// What an optimizer keeps of one parameter between its updates.
template <class T>
struct ParameterState {
  // Shaped as the parameter, one for each name of the layout; none before the first update, or
  // where the options need none.
  std::vector<Tensor<T>> tensors;
  // Made so far, where the layout says that they are counted; else 0.
  std::int64_t updates = 0;
};

// What a ParameterState holds. The names are PyTorch's.
struct StateLayout {
  std::vector<std::string> tensors;
  bool counts_updates = false;
};

// T: float, double, or another scalar of compute/scalar.h.
template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // "sgd": what must be equal for a state to be another optimizer's.
  virtual std::string_view name() const = 0;

  // One update of every parameter that has a gradient. Gradients are left as they are.
  virtual void step() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i]->has_gradient) update(i);
    }
  }

  // One update of parameters()[i] alone. Requires: it has a gradient.
  virtual void update(std::size_t i) = 0;

  virtual double learning_rate() const = 0;
  // From the next update on. Throws ConfigError when lr is negative or not finite.
  virtual void set_learning_rate(double lr) = 0;

  const std::vector<Parameter<T>*>& parameters() const { return parameters_; }

  virtual StateLayout state_layout() const = 0;
  // By parameter.
  virtual const std::vector<ParameterState<T>>& state() const { return state_; }
  // Moves the state out, which leaves that of before the first update.
  virtual std::vector<ParameterState<T>> take_state() {
    return std::exchange(state_, std::vector<ParameterState<T>>(parameters_.size()));
  }
  // Replaces the state. Requires: one entry for each parameter, as state_layout() says.
  virtual void load_state(std::vector<ParameterState<T>> state) {
    DDPROOF_CHECK(state.size() == parameters_.size());
    state_ = std::move(state);
  }
  // Makes state() the whole one on this rank of a group. A collective call where it is divided
  // over the ranks, else nothing.
  virtual void consolidate(int rank) { (void)rank; }

 protected:
  // Requires: the parameters outlive the optimizer and keep their shapes.
  // Throws ConfigError, on behalf of `who`, when there is none.
  Optimizer(const std::string& who, std::vector<Parameter<T>*> parameters)
      : parameters_(std::move(parameters)), state_(parameters_.size()) {
    if (parameters_.empty()) {
      throw ConfigError(who +
                        " parameters: got none, expected at least one; pass model.parameters()");
    }
  }

  // The state of parameters()[i], with the layout's tensors, zero where they are new.
  ParameterState<T>& state_with_tensors(std::size_t i) {
    ParameterState<T>& state = state_[i];
    if (!state.tensors.empty()) return state;
    const Tensor<T>& value = parameters_[i]->value;
    const std::size_t count = state_layout().tensors.size();
    for (std::size_t t = 0; t < count; ++t) {
      state.tensors.emplace_back(value.device(), value.shape());
    }
    return state;
  }

 private:
  std::vector<Parameter<T>*> parameters_;
  std::vector<ParameterState<T>> state_;
};

}  // namespace ddproof
