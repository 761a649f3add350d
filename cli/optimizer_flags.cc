#include "cli/optimizer_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "backends/api/error.h"
#include "cli/parse_number.h"

namespace ddproof {
namespace {

// A flag, and the optimizers or schedules that have it.
struct Owned {
  const char* flag;
  std::vector<std::string> owners;
  bool needed = false;  // by them
};

void require_owned(const Arguments& arguments, const std::string& choice, const std::string& chosen,
                   const std::vector<Owned>& table) {
  for (const Owned& row : table) {
    const bool owns = std::ranges::count(row.owners, chosen) > 0;
    if (owns && row.needed && !arguments.given(row.flag)) {
      throw ConfigError(fmt::format("{} {} needs {}", choice, chosen, row.flag));
    }
    if (!owns && arguments.given(row.flag)) {
      throw ConfigError(fmt::format("{} is for {} {}, this run has {}; leave it out", row.flag,
                                    choice, fmt::join(row.owners, " or "), chosen));
    }
  }
}

std::vector<std::int64_t> parse_milestones(std::string_view text) {
  std::vector<std::int64_t> milestones;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    const auto value = parse_number<std::int64_t>(word);
    if (!value) {
      throw ConfigError(fmt::format(
          "--lr-milestones: '{}' is no number; give updates with commas between, as 30,60", word));
    }
    milestones.push_back(*value);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return milestones;
}

void declare_schedule_flags(Arguments& arguments, OptimizerFlags& flags, LrSchedule& schedule) {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  arguments.choice("--lr-schedule", flags.schedule, lr_schedule_names(),
                   "of the learning rate, with one step per update");
  arguments.number("--lr-period", schedule.period, 1, kMany,
                   "updates: between steps of step, until the end of cosine and poly");
  arguments.number("--lr-gamma", schedule.gamma, 0, 1e6, "factor of each step of the schedule");
  arguments.text("--lr-milestones", flags.milestones,
                 "updates before the steps of multistep, as 30,60");
  arguments.number("--lr-min", schedule.min_lr, 0, 1e6, "where cosine ends");
  arguments.number("--lr-power", schedule.power, 0, 1e6, "of poly; 0.9 is usual for segmentation");
  arguments.number("--lr-warmup", schedule.warmup, 0, kMany,
                   "updates in which the rate rises to --lr first");
  arguments.number("--lr-warmup-factor", schedule.warmup_factor, 0, 1,
                   "of --lr that it rises from");
}

}  // namespace

void declare_optimizer_flags(Arguments& arguments, OptimizerFlags& flags, TrainOptions& train) {
  arguments.choice("--optimizer", flags.optimizer, {"sgd", "adam", "adamw"},
                   "what updates the parameters");
  arguments.number("--lr", flags.lr, 0, 1e6,
                   "learning rate; where not given, Adam's are 0.001, as PyTorch's");
  arguments.number("--weight-decay", flags.weight_decay, 0, 1e6,
                   "L2 penalty; of adamw, decoupled from the gradient and 0.01 where not given");
  arguments.number("--momentum", flags.sgd.momentum, 0, 1, "of SGD");
  arguments.number("--dampening", flags.sgd.dampening, 0, 1, "of the momentum");
  arguments.flag("--nesterov", flags.sgd.nesterov, "Nesterov's momentum");
  arguments.number("--beta1", flags.adam.beta1, 0, 1, "of Adam's mean, below 1");
  arguments.number("--beta2", flags.adam.beta2, 0, 1, "of Adam's mean square, below 1");
  arguments.number("--eps", flags.adam.eps, 0, 1e6, "added to the root of Adam's mean square");
  arguments.flag("--amsgrad", flags.adam.amsgrad, "Adam divides by its largest mean square so far");
  arguments.number("--clip-grad-norm", train.clip_grad_norm, 0, 1e30,
                   "cut the gradients' global norm to this; 0: do not");
  arguments.flag("--zero", train.zero, "divide the optimizer's state over the ranks (ZeRO-1)");
  declare_schedule_flags(arguments, flags, train.lr_schedule);
}

void apply_optimizer_flags(const Arguments& arguments, const OptimizerFlags& flags,
                           TrainOptions& train) {
  require_owned(arguments, "--optimizer", flags.optimizer,
                {{"--momentum", {"sgd"}},
                 {"--dampening", {"sgd"}},
                 {"--nesterov", {"sgd"}},
                 {"--beta1", {"adam", "adamw"}},
                 {"--beta2", {"adam", "adamw"}},
                 {"--eps", {"adam", "adamw"}},
                 {"--amsgrad", {"adam", "adamw"}}});
  require_owned(arguments, "--lr-schedule", flags.schedule,
                {{"--lr-period", {"step", "cosine", "poly"}, true},
                 {"--lr-gamma", {"step", "multistep"}},
                 {"--lr-milestones", {"multistep"}, true},
                 {"--lr-min", {"cosine"}},
                 {"--lr-power", {"poly"}}});
  if (arguments.given("--lr-warmup-factor") && train.lr_schedule.warmup == 0) {
    throw ConfigError("--lr-warmup-factor needs --lr-warmup");
  }
  const auto& names = lr_schedule_names();
  train.lr_schedule.kind =
      static_cast<LrSchedule::Kind>(std::ranges::find(names, flags.schedule) - names.begin());
  train.lr_schedule.milestones = parse_milestones(flags.milestones);
  if (flags.optimizer == "sgd") {
    train.sgd = flags.sgd;
    train.sgd.lr = flags.lr;
    train.sgd.weight_decay = flags.weight_decay;
    return;
  }
  AdamOptions& adam = train.adam.emplace(flags.adam);
  adam.decoupled = flags.optimizer == "adamw";
  if (arguments.given("--lr")) adam.lr = flags.lr;
  if (adam.decoupled) adam.weight_decay = 0.01;
  if (arguments.given("--weight-decay")) adam.weight_decay = flags.weight_decay;
}

}  // namespace ddproof
