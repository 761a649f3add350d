#include "reference/train/train_optimizer.h"

#include <fmt/core.h>

#include <utility>

#include "reference/optim/adam.h"
#include "reference/optim/sgd.h"
#include "reference/optim/zero_optimizer.h"

namespace ddproof {

std::unique_ptr<Optimizer<float>> make_optimizer(const TrainOptions& options,
                                                 std::vector<Parameter<float>*> parameters,
                                                 ProcessGroup* group) {
  std::unique_ptr<Optimizer<float>> optimizer;
  if (options.adam) {
    optimizer = std::make_unique<Adam<float>>(std::move(parameters), *options.adam);
  } else {
    optimizer = std::make_unique<Sgd<float>>(std::move(parameters), options.sgd);
  }
  if (!options.zero || group == nullptr) return optimizer;
  return std::make_unique<ZeroOptimizer<float>>(std::move(optimizer), *group);
}

std::vector<Setting> optimizer_settings(const TrainOptions& options) {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  std::vector<Setting> settings{{"clip grad norm", text(options.clip_grad_norm)},
                                {"lr schedule", describe(options.lr_schedule)},
                                {"zero", text(options.zero)}};
  // The names are the same whichever it is.
  const AdamOptions adam = options.adam.value_or(AdamOptions{});
  const bool is_sgd = !options.adam;
  settings.push_back({"optimizer", is_sgd ? "sgd" : adam.decoupled ? "adamw" : "adam"});
  settings.push_back({"lr", text(is_sgd ? options.sgd.lr : adam.lr)});
  settings.push_back({"weight decay", text(is_sgd ? options.sgd.weight_decay : adam.weight_decay)});
  settings.push_back({"momentum", text(options.sgd.momentum)});
  settings.push_back({"dampening", text(options.sgd.dampening)});
  settings.push_back({"nesterov", text(options.sgd.nesterov)});
  settings.push_back({"betas", fmt::format("{} and {}", adam.beta1, adam.beta2)});
  settings.push_back({"eps", text(adam.eps)});
  settings.push_back({"amsgrad", text(adam.amsgrad)});
  return settings;
}

}  // namespace ddproof
