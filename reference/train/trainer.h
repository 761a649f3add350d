// One training step, the same on one device and on every rank of a group.
//
//   Trainer<float> trainer(model, optimizer, &group, {});
//   MetricSums local = trainer.step(batch.input, batch.labels);
//
// Without a group the model is trained as it is: the single device that N ranks must equal.
// Threads: one task at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/ddp/distributed_data_parallel.h"
#include "reference/model/loss.h"
#include "reference/optim/clip_grad_norm.h"
#include "reference/optim/optimizer.h"
#include "reference/train/metrics.h"

namespace ddproof {

template <class T>
class Trainer {
 public:
  // With a group, a collective call: see DistributedDataParallel. Requires: everything outlives
  // this; `optimizer` updates the parameters of `model`.
  // `clip`: what gradients are clipped to before each update.
  Trainer(Module<T>& model, Optimizer<T>& optimizer, ProcessGroup* group, const DdpOptions& options,
          std::optional<ClipOptions> clip = std::nullopt)
      : model_(model), optimizer_(optimizer), clip_(clip) {
    if (group != nullptr) {
      ddp_ = std::make_unique<DistributedDataParallel<T>>(model, *group, options);
    }
  }

  // Forward, loss (mean over this rank's samples), backward, update. A collective call with a
  // group. Returns this rank's sums, for which it waits when all is queued. Errors: those of the
  // model, the loss, the wrapper, clipping and the optimizer.
  MetricSums step(const Tensor<T>& input, std::span<const std::int64_t> labels) {
    Module<T>& module = ddp_ ? static_cast<Module<T>&>(*ddp_) : model_;
    zero_grad(model_);
    const Tensor<T>& logits = module.forward(input);
    loss_.forward(logits, labels);
    module.backward(loss_.backward(), {});
    if (clip_) gradient_norm_ = clip_grad_norm(model_.parameters(), *clip_);
    optimizer_.step();
    return metric_sums(loss_, logits, labels);
  }

  // Of the last step, before it was clipped; 0 where nothing is clipped. The same on all ranks.
  double gradient_norm() const { return gradient_norm_; }

  // Null without a group.
  const DistributedDataParallel<T>* ddp() const { return ddp_.get(); }

 private:
  Module<T>& model_;
  Optimizer<T>& optimizer_;
  std::optional<ClipOptions> clip_;
  double gradient_norm_ = 0;
  std::unique_ptr<DistributedDataParallel<T>> ddp_;
  SoftmaxCrossEntropy<T> loss_;
};

}  // namespace ddproof
