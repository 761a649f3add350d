// One update of a model, the same on one device and on every rank of a group.
//
//   Trainer<float> trainer(model, optimizer, &group, {});
//   MetricSums local = trainer.step(batch.input, batch.labels);
//
// An update may be made of several micro-batches, whose gradients add up on each rank before they
// are reduced. Without a group the model is trained as it is: the single device that N ranks must
// equal.
//
// What an update's gradient is the mean of: with Averaging::kWorld of the means of micro-batches
// and ranks, each counting alike, as PyTorch's users have it when they divide the loss by the
// number of micro-batches; with kSamples of all samples, wherever they were; kSum adds all samples'
// up. Threads: one task at a time.
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
  // `clip`: what gradients are clipped to before each update. Rows with `ignored_label` count for
  // nothing.
  Trainer(Module<T>& model, Optimizer<T>& optimizer, ProcessGroup* group, const DdpOptions& options,
          std::optional<ClipOptions> clip = std::nullopt,
          std::int64_t ignored_label = CrossEntropyOptions{}.ignore_index)
      : model_(model),
        optimizer_(optimizer),
        averaging_(options.averaging),
        clip_(clip),
        loss_({.ignore_index = ignored_label}) {
    if (group != nullptr) {
      ddp_ = std::make_unique<DistributedDataParallel<T>>(model, *group, options);
    }
  }

  // Micro-batch number `index` of `count` that make one update.
  struct Part {
    std::int64_t index = 0;
    std::int64_t count = 1;
  };

  // Forward, loss, backward; with the last part of an update, the reduction and the optimizer's
  // step. Then a collective call with a group. Returns this rank's sums, for which it waits when
  // all is queued. Requires: the parts of an update in order. Errors: those of the model, the loss,
  // the wrapper, clipping and the optimizer.
  MetricSums step(const Tensor<T>& input, std::span<const std::int64_t> labels, Part part = {}) {
    const bool is_last = part.index + 1 == part.count;
    if (part.index == 0) {
      zero_grad(model_);
      samples_ = 0;
    }
    std::optional<typename DistributedDataParallel<T>::NoSync> accumulating;
    if (ddp_ && !is_last) accumulating.emplace(*ddp_);
    Module<T>& module = ddp_ ? static_cast<Module<T>&>(*ddp_) : model_;
    const Tensor<T>& logits = module.forward(input);
    loss_.forward(logits, labels);
    samples_ += loss_.counted();
    if (ddp_) ddp_->count_samples(loss_.counted());
    module.backward(loss_.backward(loss_scale(part)), {});
    if (is_last) update();
    return metric_sums(loss_, logits, labels);
  }

  // Of the last step, before it was clipped; 0 where nothing is clipped. The same on all ranks.
  double gradient_norm() const { return gradient_norm_; }

  // Null without a group.
  DistributedDataParallel<T>* ddp() { return ddp_.get(); }

 private:
  // The loss is a mean over its samples: times their number, it is a sum.
  double loss_scale(const Part& part) const {
    if (averaging_ == Averaging::kWorld) return 1.0 / static_cast<double>(part.count);
    return static_cast<double>(loss_.counted());
  }

  void update() {
    if (!ddp_ && averaging_ == Averaging::kSamples) divide_by_samples();
    if (clip_) gradient_norm_ = clip_grad_norm(model_.parameters(), *clip_);
    optimizer_.step();
  }

  void divide_by_samples() {
    for (Parameter<T>* parameter : optimizer_.parameters()) {
      Tensor<T>& sum = parameter->gradient;
      if (samples_ == 0) continue;  // it is zero
      sum.device().scaled_copy(sum.data(), sum.data(), reciprocal_of<T>(samples_), sum.count());
    }
  }

  Module<T>& model_;
  Optimizer<T>& optimizer_;
  const Averaging averaging_;
  std::int64_t samples_ = 0;  // of this update, on this rank
  std::optional<ClipOptions> clip_;
  double gradient_norm_ = 0;
  std::unique_ptr<DistributedDataParallel<T>> ddp_;
  SoftmaxCrossEntropy<T> loss_;
};

}  // namespace ddproof
