// ddproof verify: runs the properties on a backend and says what holds.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/registry/registry.h"
#include "cli/arguments.h"
#include "cli/subcommand.h"
#include "cli/suggest.h"
#include "properties/suite.h"

namespace ddproof {
namespace {

struct VerifyFlags {
  std::string backend = "sim";
  int world_size = 4;
  PropertyOptions options;
  std::vector<std::string> only;
  bool json = false;
};

// False when only help was asked for.
bool parse(CommandContext& context, VerifyFlags& flags) {
  std::string names;
  for (const SuiteEntry& entry : property_suite()) names += "\n  " + entry.name + ": " + entry.what;
  Arguments arguments("ddproof verify", "Runs the properties on a backend:" + names);
  apply_rc_params(context.runtime.environment().get("RC_PARAMS").value_or(""), flags.options);
  arguments.text("--backend", flags.backend, "sim, gloo or single; see `ddproof backends`");
  arguments.number("--world-size", flags.world_size, 1, 256, "ranks, at most");
  arguments.number("--seed", flags.options.seed, "of the cases");
  arguments.number("--cases", flags.options.cases, 1, 1'000'000'000, "to try per property");
  arguments.texts("--only", flags.only, "run this property; may be given several times");
  arguments.flag("--json", flags.json, "one JSON object per property");
  if (!arguments.parse(context.arguments, context.out)) return false;
  flags.options.replay = fmt::format(
      "ddproof verify --backend {} --world-size {} --only {{name}} --seed {{seed}} --cases "
      "{{cases}}",
      flags.backend, flags.world_size);
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

}  // namespace

int verify_command(CommandContext& context) {
  VerifyFlags flags;
  if (!parse(context, flags)) return kExitHolds;
  const std::unique_ptr<Backend> backend = make_backend(flags.backend);
  if (flags.backend == "single") flags.world_size = 1;
  const PropertyWorld world{*backend, flags.world_size};
  bool all_hold = true;
  for (const SuiteEntry& entry : chosen(flags.only)) {
    const PropertyResult result = entry.run(world, flags.options, context.runtime);
    all_hold = all_hold && result.holds;
    context.out << (flags.json ? to_json(result) : describe(result)) << std::endl;
  }
  return all_hold ? kExitHolds : kExitFailed;
}

}  // namespace ddproof
