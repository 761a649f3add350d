// DistributedDataParallel's side of data_parallel.py: trains a script on simulated ranks.
#include <memory>
#include <optional>

#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"
#include "reference/ddp/distributed_data_parallel.h"
#include "reference/ddp/hooks/compression_hook.h"
#include "reference/model/layer.h"
#include "reference/optim/sgd.h"
#include "tests/peer/answers.h"

namespace ddproof::peer {
namespace {

using nlohmann::json;
using Ddp = DistributedDataParallel<float>;

// The loss is the sum of gradient times parameter, over those that have a gradient in the step.
class ScriptedLoss final : public Module<float> {
 public:
  ScriptedLoss(const json& sizes, int rank) : rank_(rank) {
    for (const json& size : sizes) {
      auto& parameter = parameters_.emplace_back(std::make_unique<Parameter<float>>());
      parameter->name = "parameters_." + std::to_string(parameters_.size() - 1);
      parameter->value = Tensor<float>(device_, {size.get<std::int64_t>()});
      parameter->gradient = Tensor<float>(device_, {size.get<std::int64_t>()});
    }
    mean_.name = "mean";
    mean_.value = Tensor<float>(device_, {1});
  }

  void set_gradients(const json& gradients) { gradients_ = gradients; }
  float mean() const { return mean_.value.span()[0]; }

  const Tensor<float>& forward(const Tensor<float>& input) override {
    float& mean = mean_.value.span()[0];
    mean = mean * 0.5F + static_cast<float>(rank_ + 1);
    return input;
  }
  const Tensor<float>& backward(const Tensor<float>& output_gradient,
                                const GradientReady<float>& ready) override {
    for (std::size_t i = parameters_.size(); i-- > 0;) {
      if (gradients_[i].is_null()) continue;
      Parameter<float>& parameter = *parameters_[i];
      for (float& value : parameter.gradient.span()) value += gradients_[i].get<float>();
      internal::report_ready(parameter, ready);
    }
    return output_gradient;
  }
  std::vector<Parameter<float>*> parameters() override {
    std::vector<Parameter<float>*> result;
    for (const auto& parameter : parameters_) result.push_back(parameter.get());
    return result;
  }
  std::vector<Parameter<float>*> unused_parameters() override {
    std::vector<Parameter<float>*> result;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (gradients_[i].is_null()) result.push_back(parameters_[i].get());
    }
    return result;
  }
  std::vector<ModuleBuffer<float>*> buffers() override { return {&mean_}; }

 private:
  int rank_;
  Cpu<float> device_;
  std::vector<std::unique_ptr<Parameter<float>>> parameters_;
  ModuleBuffer<float> mean_;
  json gradients_;
};

json last_values(ScriptedLoss& model) {
  json values = json::array();
  for (const Parameter<float>* parameter : model.parameters()) {
    values.push_back(parameter->value.span().back());
  }
  return values;
}

json last_gradients(ScriptedLoss& model) {
  json gradients = json::array();
  for (const Parameter<float>* parameter : model.parameters()) {
    gradients.push_back(parameter->has_gradient ? json(parameter->gradient.span().back()) : json());
  }
  return gradients;
}

DdpOptions options_of(const json& script) {
  return {
      .bucket_cap_bytes = static_cast<std::int64_t>(script["bucket_cap_mb"].get<double>() * 0x1p20),
      .find_unused_parameters = script["kind"] == "unused",
      .static_graph = script["kind"] == "static",
      .broadcast_buffers = script["broadcast_buffers"]};
}

json run_rank(const json& script, RankContext& rank) {
  const std::string kind = script["kind"];
  ScriptedLoss model(script["sizes"], rank.group.rank());
  Ddp ddp(model, rank.group, options_of(script));
  if (kind == "fp16") ddp.register_comm_hook(std::make_unique<Float16Compression>());
  Sgd<float> sgd(
      model.parameters(),
      {.lr = script["lr"], .momentum = script["momentum"], .weight_decay = script["weight_decay"]});
  const std::int64_t accumulate = script["accumulate"];
  const json& steps = script["steps"][static_cast<std::size_t>(rank.group.rank())];
  json record = json::array();
  const auto epoch = [&] {
    std::int64_t index = 0;
    for (const json& gradients : steps) {
      if (index % accumulate == 0 && script["zero_grad"].get<bool>()) zero_grad(model);
      const bool reduced = ++index % accumulate == 0;
      std::optional<Ddp::NoSync> accumulating;
      if (!reduced) accumulating.emplace(ddp);
      model.set_gradients(gradients);
      ddp.forward({});
      ddp.backward({}, {});
      if (reduced) sgd.step();
      record.push_back({{"gradients", last_gradients(model)},
                        {"values", last_values(model)},
                        {"mean", model.mean()}});
    }
  };
  ddp.join({.enable = kind == "join", .divide_by_initial_world_size = script["divide_by_initial"]},
           epoch);
  return {{"steps", record}, {"values", last_values(model)}};
}

}  // namespace

json answer_data_parallel(const json& script) {
  const int world = script["world"];
  std::vector<json> by_rank(static_cast<std::size_t>(world));
  make_backend("sim")->run_world({.world_size = world, .seed = 1}, [&](RankContext& rank) {
    by_rank[static_cast<std::size_t>(rank.group.rank())] = run_rank(script, rank);
  });
  return by_rank;
}

}  // namespace ddproof::peer
