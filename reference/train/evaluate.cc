#include "reference/train/evaluate.h"

#include <utility>
#include <vector>

#include "reference/data/data_loader.h"

namespace ddproof {
namespace {

// Uneven between ranks by at most one; empty where there are more ranks than samples.
IndexList share_of(std::int64_t length, int rank, int world_size) {
  IndexList::Wide indices;
  for (std::int64_t i = rank; i < length; i += world_size) indices.push_back(i);
  return IndexList(std::move(indices));
}

MetricSums evaluate_share(Module<float>& model, Device<float>& device, const Dataset& dataset,
                          std::int64_t batch_size, IndexList indices, Runtime& runtime) {
  MetricSums sums;
  if (indices.size() == 0) return sums;
  SoftmaxCrossEntropy<float> loss;
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
  const int rank = group != nullptr ? group->rank() : 0;
  const int world_size = group != nullptr ? group->size() : 1;
  const MetricSums local = evaluate_share(model, device, dataset, batch_size,
                                          share_of(dataset.size(), rank, world_size), runtime);
  return group != nullptr ? sum_over_ranks(*group, local) : local;
}

}  // namespace ddproof
