// DistributedDataParallel: a module whose gradients are averaged over the ranks of a group.
//
//   DistributedDataParallel<float> ddp(model, group, {});
//   const auto& output = ddp.forward(input);
//   ddp.backward(loss_gradient, {});   // returns with averaged gradients on every rank
//   optimizer.step();
//
// The constructor compares the models of all ranks and gives every rank the parameters of rank 0.
// While backward goes on, each bucket of gradients is reduced as soon as it is complete.
// Threads: one task at a time.
#pragma once

#include <vector>

#include "backends/api/process_group.h"
#include "reference/ddp/buckets.h"
#include "reference/ddp/model_check.h"
#include "reference/ddp/reducer.h"
#include "reference/model/module.h"

namespace ddproof {

struct DdpOptions {
  // A bucket closes when it has reached this size; the first one at 1 MiB.
  std::int64_t bucket_cap_bytes = kDefaultBucketBytes;
  // Of a run that goes on: Reducer::gradient_order() of the one before. Empty: a new run.
  std::vector<std::size_t> gradient_order;
};

template <class T>
class DistributedDataParallel : public Module<T> {
 public:
  // A collective call. Requires: `module` and `group` outlive this.
  // Throws ConfigError on all ranks when the models differ, or when there is no parameter.
  DistributedDataParallel(Module<T>& module, ProcessGroup& group, const DdpOptions& options)
      : module_(module),
        group_(group),
        reducer_(module.parameters(), group, options.bucket_cap_bytes, options.gradient_order) {
    require_same_model(group, describe_parameters());
    broadcast_parameters();
  }

  // Before the second forward, once, a collective call: the buckets are rebuilt.
  const Tensor<T>& forward(const Tensor<T>& input) override {
    reducer_.prepare_forward();
    return module_.forward(input);
  }

  // A collective call. `ready` is called for each parameter before its gradient is reduced.
  // Throws ConfigError on all ranks when a parameter got no gradient on some rank.
  const Tensor<T>& backward(const Tensor<T>& output_gradient,
                            const GradientReady<T>& ready) override {
    reducer_.prepare_backward();
    const Tensor<T>& input_gradient =
        module_.backward(output_gradient, [&](Parameter<T>& parameter) {
          if (ready) ready(parameter);
          reducer_.mark_ready(parameter);
        });
    reducer_.finalize();
    return input_gradient;
  }

  std::vector<Parameter<T>*> parameters() override { return module_.parameters(); }

  const Reducer<T>& reducer() const { return reducer_; }

 private:
  std::vector<ParameterInfo> describe_parameters() {
    std::vector<ParameterInfo> result;
    for (const Parameter<T>* parameter : module_.parameters()) {
      result.push_back(
          {parameter->name, std::string(element_of<T>().name()), parameter->value.shape()});
    }
    return result;
  }

  void broadcast_parameters() {
    std::vector<WorkPtr> works;
    for (Parameter<T>* parameter : module_.parameters()) {
      works.push_back(group_.broadcast(parameter->value.buffer(), 0, {.label = parameter->name}));
    }
    for (const WorkPtr& work : works) work->wait();
  }

  Module<T>& module_;
  ProcessGroup& group_;
  Reducer<T> reducer_;
};

}  // namespace ddproof
