// ddproof scenario: runs what files say that ranks do, and compares what comes of it with what they
// expect.
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/files.h"
#include "cli/arguments.h"
#include "cli/output_file.h"
#include "cli/run_files.h"
#include "cli/scenario_output.h"
#include "cli/subcommand.h"
#include "properties/scenario/explore.h"
#include "properties/scenario/parse.h"
#include "properties/scenario/shrink.h"

namespace ddproof {
namespace {

using scenario::ExploreOptions;
using scenario::RecordedRun;
using scenario::Scenario;
using scenario::ScenarioResult;

struct ScenarioFlags {
  std::vector<std::string> files;
  std::uint64_t seed = 0;
  bool explain = false;
  bool json = false;
  std::optional<RecordedRun> schedule;
  std::optional<sim::FaultPlan> faults;
  RunFileFlags run_files;
  std::string shrunk;
};

sim::FaultPlan parse_faults(const std::string& text) {
  try {
    return sim::parse_fault_plan(text);
  } catch (const std::invalid_argument& error) {
    throw ConfigError(std::string("--faults: ") + error.what());
  }
}

// What is said of one run or one world makes no sense for several.
void require_one_file(const Arguments& arguments, const ScenarioFlags& flags) {
  if (flags.files.size() == 1) return;
  for (const char* name :
       {"--schedule", "--faults", "--trace", "--log", "--shrink", "--flight-recorder"}) {
    if (!arguments.given(name)) continue;
    throw ConfigError(std::string(name) + " takes one scenario file, " +
                      std::to_string(flags.files.size()) + " are given");
  }
}

// False when only help was asked for.
bool parse(CommandContext& context, ScenarioFlags& flags) {
  std::string schedule;
  std::string faults;
  Arguments arguments("ddproof scenario",
                      "Runs scenario files on simulated ranks: what each rank does, and what must "
                      "come of it.\nThe form of a file: properties/scenario/README.md.");
  arguments.flag("--explain", flags.explain, "tell what each rank did, in virtual time");
  arguments.flag("--json", flags.json, "one JSON object per file and line");
  arguments.number("--seed", flags.seed, "of the first run of each schedule");
  arguments.text("--schedule", schedule, "run just this schedule, from a failure's replay line");
  arguments.text("--faults", faults, "strike instead of the file's; \";\" between them");
  declare_run_file_flags(arguments, flags.run_files, "the told run");
  arguments.text("--shrink", flags.shrunk, "write the scenario of a failure here, made small");
  arguments.rest("files", flags.files, "the files, after all flags");
  if (!arguments.parse(context.arguments, context.out)) return false;
  if (flags.files.empty()) throw ConfigError("no file is given; pass one scenario file or more");
  refuse_flags_among(flags.files);
  require_one_file(arguments, flags);
  require_paths_of_their_own(flags.run_files,
                             {{"the scenario file", flags.files[0]}, {"--shrink", flags.shrunk}});
  if (arguments.given("--schedule")) {
    if (arguments.given("--shrink")) {
      throw ConfigError("--shrink: a schedule belongs to one program; leave out --schedule");
    }
    if (arguments.given("--seed")) throw ConfigError("--seed: the schedule has a seed of its own");
    flags.schedule = scenario::parse_recorded_run(schedule);
  }
  if (arguments.given("--faults")) flags.faults = parse_faults(faults);
  return true;
}

std::string read_text(const std::string& path, FileSystem& files) {
  try {
    const std::vector<std::byte> bytes = read_file(files, path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const DataError& error) {
    throw ConfigError(error.what());
  }
}

void replace_faults(Scenario& what, const sim::FaultPlan& faults) {
  try {
    sim::check_fault_plan(faults, what.world_size);
  } catch (const std::invalid_argument& error) {
    throw ConfigError(std::string("--faults: ") + error.what());
  }
  what.faults = faults;
  what.drawn_faults.reset();
}

// Writes the small scenario, and tells of it as of the large one.
void shrink(const std::string& text, const Scenario& what, const ScenarioResult& result,
            const ScenarioFlags& flags, CommandContext& context) {
  if (result.told.wrong.empty()) {
    context.err << "nothing to shrink: no run is wrong\n";
    return;
  }
  const scenario::ShrunkScenario shrunk =
      scenario::shrink_scenario(text, what, result, flags.shrunk);
  OutputFile file(context.runtime.files(), flags.shrunk);
  file.stream() << shrunk.text;
  file.close();
  if (flags.json) {
    print_json(flags.shrunk, shrunk.scenario, shrunk.result, flags.explain, context.out);
    return;
  }
  context.out << "\nshrunk in " << shrunk.runs << " runs from " << to_string(size_of(what, result))
              << " to " << to_string(size_of(shrunk.scenario, shrunk.result)) << "\n"
              << shrunk.text;
  print_text(flags.shrunk, shrunk.scenario, shrunk.result, flags.explain, context.out);
}

}  // namespace

int scenario_command(CommandContext& context) {
  ScenarioFlags flags;
  if (!parse(context, flags)) return kExitHolds;
  // All are read first: a file that is wrong is told before any time is spent.
  std::vector<std::string> texts;
  std::vector<Scenario> scenarios;
  for (const std::string& path : flags.files) {
    texts.push_back(read_text(path, context.runtime.files()));
    scenarios.push_back(scenario::parse_scenario(texts.back(), path));
    if (flags.faults) replace_faults(scenarios.back(), *flags.faults);
  }
  if (flags.schedule) scenario::require_same_program(scenarios[0], *flags.schedule);
  FileSystem& files = context.runtime.files();
  const std::string& folder = flags.run_files.flight_recorder;
  if (!folder.empty()) files.make_directory(folder);
  EventFiles events(flags.run_files, files);
  const ExploreOptions options{.seed = flags.seed,
                               .stories = flags.explain,
                               .records = !folder.empty(),
                               .trace = events.sink()};
  bool all_hold = true;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const ScenarioResult result = flags.schedule
                                      ? replay_scenario(scenarios[i], *flags.schedule, options)
                                      : run_scenario(scenarios[i], options);
    all_hold = all_hold && result.wrong.empty();
    const auto print = flags.json ? print_json : print_text;
    print(flags.files[i], scenarios[i], result, flags.explain, context.out);
    if (!flags.shrunk.empty()) shrink(texts[i], scenarios[i], result, flags, context);
    context.out.flush();
    if (!folder.empty()) write_flight_recorders(result.told.recorders, 0, folder, files);
  }
  events.close();
  return all_hold ? kExitHolds : kExitFailed;
}

}  // namespace ddproof
