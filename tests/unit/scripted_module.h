// A module without a function, whose gradients a test writes down, and ranks to wrap it on. Numbers
// are small integers and powers of two, so that every expectation is exact.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/forwarding_process_group.h"
#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"
#include "reference/ddp/distributed_data_parallel.h"

namespace ddproof {

// backward gives each parameter, from the last to the first, the gradient that the test wants.
class ScriptedModule : public Module<float> {
 public:
  ScriptedModule(std::int64_t parameters, std::int64_t count) {
    for (std::int64_t i = 0; i < parameters; ++i) add("p" + std::to_string(i), {count});
  }
  void add(const std::string& name, const Shape& shape) {
    auto parameter = std::make_unique<Parameter<float>>();
    parameter->name = name;
    parameter->value = Tensor<float>(device_, shape);
    parameter->gradient = Tensor<float>(device_, shape);
    parameters_.push_back(std::move(parameter));
  }
  void add_buffer(const std::string& name) {
    buffers_.push_back(std::make_unique<ModuleBuffer<float>>());
    buffers_.back()->name = name;
    buffers_.back()->value = Tensor<float>(device_, {1});
  }

  const Tensor<float>& forward(const Tensor<float>&) override {
    if (on_forward) on_forward();
    return output_;
  }
  const Tensor<float>& backward(const Tensor<float>&, const GradientReady<float>& ready) override {
    for (std::size_t at = parameters_.size(); at-- > 0;) {
      const std::size_t i = ascending ? parameters_.size() - 1 - at : at;
      if (skip && skip(i)) continue;
      if (on_gradient) on_gradient();
      for (float& value : parameters_[i]->gradient.span()) {
        value = gradient(i) + (accumulates ? value : 0);
      }
      parameters_[i]->has_gradient = true;
      for (int report = 0; report < reports; ++report) ready(*parameters_[i]);
    }
    return output_;
  }
  std::vector<Parameter<float>*> parameters() override {
    std::vector<Parameter<float>*> result;
    for (const auto& parameter : parameters_) result.push_back(parameter.get());
    return result;
  }
  std::vector<Parameter<float>*> unused_parameters() override {
    std::vector<Parameter<float>*> result;
    for (std::size_t i = 0; tells_unused && i < parameters_.size(); ++i) {
      if (skip && skip(i)) result.push_back(parameters_[i].get());
    }
    return result;
  }
  std::vector<ModuleBuffer<float>*> buffers() override {
    std::vector<ModuleBuffer<float>*> result;
    for (const auto& buffer : buffers_) result.push_back(buffer.get());
    return result;
  }
  float gradient_of(std::size_t i) const { return parameters_[i]->gradient.span()[0]; }
  float& buffer(std::size_t i) { return buffers_[i]->value.span()[0]; }

  std::function<float(std::size_t)> gradient = [](std::size_t) { return 1.0F; };
  std::function<bool(std::size_t)> skip;  // parameters that backward does not reach
  std::function<void()> on_forward;
  std::function<void()> on_gradient;  // before each gradient that backward makes
  bool ascending = false;             // the other way round
  bool accumulates = false;           // adds to what is there, as layers do
  bool tells_unused = false;          // unused_parameters() knows what is skipped
  int reports = 1;                    // how often backward reports each parameter

 private:
  Cpu<float> device_;
  Tensor<float> output_;
  std::vector<std::unique_ptr<Parameter<float>>> parameters_;
  std::vector<std::unique_ptr<ModuleBuffer<float>>> buffers_;
};

inline WorldReport run_ranks(int world_size, const std::function<void(RankContext&)>& body,
                             const std::string& backend = "sim") {
  return make_backend(backend)->run_world({.world_size = world_size, .seed = 7}, body);
}

inline void step(DistributedDataParallel<float>& ddp) {
  ddp.forward({});
  ddp.backward({}, {});
}

// The text of the ConfigError that `body` throws on each rank.
inline std::vector<std::string> refusals(int world_size,
                                         const std::function<void(RankContext&)>& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(world_size));
  run_ranks(world_size, [&](RankContext& rank) {
    try {
      body(rank);
    } catch (const ConfigError& error) {
      texts[static_cast<std::size_t>(rank.group.rank())] = error.what();
    }
  });
  return texts;
}

// `text` as each of so many ranks says it.
inline std::vector<std::string> said_by_all(int world_size, const std::string& text) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < world_size; ++rank) {
    texts.push_back("rank " + std::to_string(rank) + "/" + std::to_string(world_size) + " [sim] " +
                    text);
  }
  return texts;
}

// Forwards everything, and notes each call's label when it is posted.
class RecordingGroup : public ForwardingProcessGroup {
 public:
  RecordingGroup(ProcessGroup& inner, std::vector<std::string>& log)
      : ForwardingProcessGroup(inner), log_(log) {}
  WorkPtr submit(Call&& call) override {
    log_.push_back(call.label);
    return inner_.submit(std::move(call));
  }

 private:
  std::vector<std::string>& log_;
};

}  // namespace ddproof
