#include "reference/train/evaluate.h"

#include <utility>
#include <vector>

#include "reference/data/data_loader.h"

namespace ddproof {
namespace {

// Back to training at the end.
class InEvaluation {
 public:
  explicit InEvaluation(Module<float>& model) : model_(model) { model.set_training(false); }
  ~InEvaluation() { model_.set_training(true); }
  InEvaluation(const InEvaluation&) = delete;
  InEvaluation& operator=(const InEvaluation&) = delete;

 private:
  Module<float>& model_;
};

MetricSums evaluate_share(Module<float>& model, Device<float>& device, const Dataset& dataset,
                          std::int64_t batch_size, IndexList indices, Runtime& runtime) {
  MetricSums sums;
  if (indices.size() == 0) return sums;  // more ranks than samples
  const InEvaluation switched(model);
  SoftmaxCrossEntropy<float> loss({.ignore_index = dataset.ignored_label()});
  DataLoader<float> loader(runtime, device, dataset, std::move(indices),
                           {.batch_size = batch_size});
  while (const Batch<float>* batch = loader.next()) {
    const Tensor<float>& logits = model.forward(batch->input);
    loss.forward(logits, batch->labels);
    sums += metric_sums(loss, logits, batch->labels);
  }
  return sums;
}

}  // namespace

MetricSums evaluate(Module<float>& model, Device<float>& device, const Dataset& dataset,
                    std::int64_t batch_size, ProcessGroup* group, Runtime& runtime) {
  DistributedSampler sampler({.length = dataset.size(),
                              .replicas = group != nullptr ? group->size() : 1,
                              .rank = group != nullptr ? group->rank() : 0,
                              .shuffle = false,
                              .tail = Tail::kKeep});
  const MetricSums local =
      evaluate_share(model, device, dataset, batch_size, sampler.indices(), runtime);
  return group != nullptr ? sum_over_ranks(*group, local) : local;
}

}  // namespace ddproof
