// A trainable function: forward, backward, and its parameters.
//
// There is no graph. A module keeps what its backward needs from its last forward, so backward()
// belongs to the forward() just before it. backward() ADDS to the parameters' gradients, as PyTorch
// does, and reports each parameter the moment its gradient of this pass is complete: that is the
// hook by which DDP reduces buckets while backward goes on.
// Threads: one task at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reference/compute/tensor.h"

namespace ddproof {

template <class T>
struct Parameter {
  std::string name;  // "conv1.weight": unique in its model
  Tensor<T> value;
  // Same shape as value.
  Tensor<T> gradient;
  // True when the last backward pass reached this parameter. Cleared by zero_grad().
  bool has_gradient = false;
};

// A tensor that belongs to the model but is not trained: a running mean of BatchNorm.
template <class T>
struct ModuleBuffer {
  std::string name;  // "bn1.running_mean": unique in its model, among the parameters too
  Tensor<T> value;
};

template <class T>
using GradientReady = std::function<void(Parameter<T>&)>;

template <class T>
class Module {
 public:
  virtual ~Module() = default;

  // The returned tensor belongs to the module and is valid until the next forward(). `input` must
  // stay alive and unchanged until backward() has returned.
  // Requires: input.size(0) is the batch; the rest as the module documents (checked: ConfigError).
  virtual const Tensor<T>& forward(const Tensor<T>& input) = 0;

  // d loss / d output in, d loss / d input out (valid until the next backward). Calls `ready` once
  // per parameter reached, the last layer's first; `ready` may be empty.
  virtual const Tensor<T>& backward(const Tensor<T>& output_gradient,
                                    const GradientReady<T>& ready) = 0;

  // With false, backward() may leave the input's gradient out and return an empty tensor: nobody
  // needs it below a model's first layer. True at first.
  virtual void set_input_gradient_needed(bool needed) { (void)needed; }

  // For layers that do something else in evaluation. True at first.
  virtual void set_training(bool training) { (void)training; }

  // In registration order: the order that DDP's buckets and checkpoints use. Each once, also where
  // layers share it. Stable for life.
  virtual std::vector<Parameter<T>*> parameters() = 0;

  // Those that the last forward() did not use, so that its backward() will not reach them.
  virtual std::vector<Parameter<T>*> unused_parameters() { return {}; }

  // In registration order. Stable for life.
  virtual std::vector<ModuleBuffer<T>*> buffers() { return {}; }
};

// Sets all gradients to zero and has_gradient to false.
template <class T>
void zero_grad(Module<T>& module) {
  for (Parameter<T>* parameter : module.parameters()) {
    parameter->gradient.device().fill(parameter->gradient.data(), parameter->gradient.count(), T{});
    parameter->has_gradient = false;
  }
}

}  // namespace ddproof
