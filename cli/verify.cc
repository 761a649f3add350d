// ddproof verify: runs the properties on a backend and says what holds.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/suggest.h"
#include "backends/registry/registry.h"
#include "cli/arguments.h"
#include "cli/dataset.h"
#include "cli/device.h"
#include "cli/subcommand.h"
#include "cli/watched_backend.h"
#include "properties/equivalence.h"
#include "properties/suite.h"
#include "reference/model/models.h"

namespace ddproof {
namespace {

// Real training instead of generated cases, with --data.
struct TrainingFlags {
  DatasetFlags data;
  std::string model = "cnn";
  int steps = 10;
  std::int64_t batch_size = 16;
};

struct VerifyFlags {
  std::string backend = "sim";
  int world_size = 4;
  PropertyOptions options;
  std::vector<std::string> only;
  TrainingFlags training;
  DeviceFlags device;
  RunFileFlags run_files;
  bool json = false;
};

// Throws ConfigError for flags that would have no effect.
void require_flags_that_count(const Arguments& arguments, const VerifyFlags& flags) {
  if (flags.backend == "single" && arguments.given("--world-size") && flags.world_size != 1) {
    throw ConfigError(fmt::format(
        "--world-size is {}, but --backend single has 1 rank; leave out --world-size, or choose "
        "another backend",
        flags.world_size));
  }
  const bool data = arguments.given("--data");
  const std::vector<std::string> ignored =
      data ? std::vector<std::string>{"--only", "--cases"}
           : std::vector<std::string>{"--format", "--model", "--steps", "--batch-size"};
  for (const std::string& flag : ignored) {
    if (!arguments.given(flag)) continue;
    throw ConfigError(
        data ? fmt::format("{} is of the generated cases, which --data replaces; leave out one of "
                           "them",
                           flag)
             : fmt::format("{} is of the training on --data; add --data, or leave out {}", flag,
                           flag));
  }
}

// False when only help was asked for.
bool parse(CommandContext& context, VerifyFlags& flags) {
  std::string names;
  for (const SuiteEntry& entry : property_suite()) names += "\n  " + entry.name + ": " + entry.what;
  Arguments arguments("ddproof verify", "Runs the properties on a backend:" + names +
                                            "\nWith --data: compares N ranks with one device on "
                                            "that data set, step by step.");
  apply_rc_params(context.runtime.environment().get("RC_PARAMS").value_or(""), flags.options);
  arguments.text("--backend", flags.backend, "where the ranks are; see `ddproof backends`");
  arguments.number("--world-size", flags.world_size, 1, 256, "ranks, at most");
  arguments.number("--seed", flags.options.seed, "of the cases");
  arguments.number("--cases", flags.options.cases, 1, 1'000'000'000, "to try per property");
  arguments.texts("--only", flags.only, "run this property; may be given several times");
  declare_dataset_flags(arguments, flags.training.data);
  declare_device_flags(arguments, flags.device);
  arguments.choice("--model", flags.training.model, {"mlp", "cnn"}, "to train on --data");
  arguments.number("--steps", flags.training.steps, 1, 1'000'000, "to train on --data");
  arguments.number("--batch-size", flags.training.batch_size, 1, 1 << 20,
                   "samples per rank and step, on --data");
  declare_run_file_flags(arguments, flags.run_files, "the last run, or the one that fails,");
  arguments.flag("--json", flags.json, "one JSON object per line");
  if (!arguments.parse(context.arguments, context.out)) return false;
  require_flags_that_count(arguments, flags);
  if (flags.backend == "single") flags.world_size = 1;
  flags.options.replay = fmt::format(
      "{{rc_params}}ddproof verify --backend {} --world-size {}{} --only {{name}} --seed {{seed}} "
      "--cases {{cases}}",
      flags.backend, flags.world_size, as_words(flags.device));
  return true;
}

std::vector<SuiteEntry> chosen(const std::vector<std::string>& only) {
  std::vector<SuiteEntry> suite = property_suite();
  if (only.empty()) return suite;
  std::vector<std::string> names;
  for (const SuiteEntry& entry : suite) names.push_back(entry.name);
  for (const std::string& name : only) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw ConfigError("--only is \"" + name + "\", allowed are " +
                      fmt::format("{}", fmt::join(names, ", ")) + did_you_mean(name, names));
  }
  std::erase_if(suite, [&](const SuiteEntry& entry) {
    return std::ranges::find(only, entry.name) == only.end();
  });
  return suite;
}

std::string to_json(const PropertyResult& result) {
  nlohmann::ordered_json json = {{"property", result.name}, {"holds", result.holds},
                                 {"cases", result.cases},   {"seconds", result.seconds},
                                 {"seed", result.seed},     {"classes", result.classes}};
  if (!result.measures.empty()) json["measures"] = result.measures;
  if (!result.holds) {
    json["failure"] = result.failure;
    json["replay"] = result.replay;
  }
  return json.dump();
}

std::string describe(int step, const StepComparison& comparison, int world_size) {
  std::string text = fmt::format(
      "{} step {:2}: {} gradients, largest |error|/bound {:.3f}; momentum and weights follow {}; "
      "{} "
      "ranks {}",
      comparison.wrong.empty() ? "holds " : "FAILED", step, comparison.elements,
      comparison.gradient, std::max(comparison.momentum, comparison.weight) <= 1 ? "them" : "NOT",
      world_size, comparison.ranks_identical ? "bit-identical" : "DIFFER");
  if (!comparison.wrong.empty()) text += "\n  " + comparison.wrong;
  return text;
}

std::string to_json(int step, const StepComparison& comparison) {
  nlohmann::ordered_json json = {{"step", step},
                                 {"holds", comparison.wrong.empty()},
                                 {"gradient_error_over_bound", comparison.gradient},
                                 {"momentum_error_over_bound", comparison.momentum},
                                 {"weight_error_over_bound", comparison.weight},
                                 {"elements", comparison.elements},
                                 {"ranks_identical", comparison.ranks_identical}};
  if (!comparison.wrong.empty()) json["failure"] = comparison.wrong;
  return json.dump();
}

PropertyWorld property_world(const VerifyFlags& flags, Backend& backend) {
  return {.backend = backend, .world_size_max = flags.world_size, .make_device = [&](int rank) {
            return make_device(flags.device, backend, rank);
          }};
}

// Returns whether all steps hold.
bool verify_training(const VerifyFlags& flags, WatchedBackend& backend, CommandContext& context) {
  const PropertyWorld world = property_world(flags, backend);
  const auto dataset = read_dataset(flags.training.data, context.runtime.files(), Split::kTrain);
  if (!dataset->label_shape().empty()) {
    throw ConfigError("verify compares models that give a class to each sample; " +
                      flags.training.data.directory + " has a label for each pixel");
  }
  const Shape& shape = dataset->sample_shape();
  const TrainingJob job{.make_model =
                            [&](Device<float>& device) {
                              return make_model(flags.training.model,
                                                {shape[0], shape[1], shape[2]},
                                                dataset->class_count(), device, flags.options.seed);
                            },
                        .dataset = *dataset,
                        .seed = flags.options.seed,
                        .batch_size = flags.training.batch_size,
                        .steps = flags.training.steps,
                        .sgd = {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4},
                        .ddp = {}};
  std::vector<StepComparison> steps;
  try {
    steps = compare_with_one_device(world, flags.world_size, job);
  } catch (...) {
    backend.tell_of_failure(context.err);
    throw;
  }
  bool all_hold = true;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int step = static_cast<int>(i);
    all_hold = all_hold && steps[i].wrong.empty();
    context.out << (flags.json ? to_json(step, steps[i])
                               : describe(step, steps[i], flags.world_size))
                << "\n";
  }
  if (!all_hold) backend.print_last_calls(context.err);
  backend.keep();
  return all_hold;
}

// Returns whether all chosen properties hold.
bool verify_properties(const VerifyFlags& flags, WatchedBackend& backend, CommandContext& context) {
  const PropertyWorld world = property_world(flags, backend);
  PropertyOptions options = flags.options;
  options.tell_more = [&backend] {
    std::ostringstream lines;
    backend.tell_of_failure(lines);
    const std::string text = lines.str();
    return text.empty() ? text : "\n" + text.substr(0, text.size() - 1);
  };
  bool all_hold = true;
  for (const SuiteEntry& entry : chosen(flags.only)) {
    backend.forget();
    const PropertyResult result = entry.run(world, options, context.runtime);
    all_hold = all_hold && result.holds;
    context.out << (flags.json ? to_json(result) : describe(result)) << std::endl;
  }
  if (all_hold && flags.run_files.any() && !backend.has_run()) {
    context.err << "ddproof verify: no ranks ran last, so there is nothing to write to files\n";
  }
  if (all_hold) backend.keep();
  return all_hold;
}

}  // namespace

int verify_command(CommandContext& context) {
  VerifyFlags flags;
  if (!parse(context, flags)) return kExitHolds;
  WatchedBackend backend(make_backend(flags.backend), flags.run_files, context.runtime.files());
  require_device_fits(flags.device, backend, flags.world_size > 1);
  const bool holds = flags.training.data.directory.empty()
                         ? verify_properties(flags, backend, context)
                         : verify_training(flags, backend, context);
  return holds ? kExitHolds : kExitFailed;
}

}  // namespace ddproof
