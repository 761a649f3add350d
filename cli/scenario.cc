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
#include "cli/scenario_output.h"
#include "cli/subcommand.h"
#include "properties/scenario/explore.h"
#include "properties/scenario/parse.h"
#include "properties/scenario/shrink.h"
#include "simulator/trace.h"

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
  std::string trace;
  std::string log;
  std::string shrunk;
  std::string flight_recorder;
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
  arguments.text("--trace", flags.trace, "write the told run as a Chrome trace, for Perfetto");
  arguments.text("--log", flags.log, "write the told run's events, one a line, for ddproof diff");
  arguments.text("--shrink", flags.shrunk, "write the scenario of a failure here, made small");
  arguments.text(
      "--flight-recorder", flags.flight_recorder,
      "write each rank's last calls in the told run as DIR/rank_N.json, with the names of "
      "PyTorch's flight recorder");
  arguments.rest("files", flags.files, "the files, after all flags");
  if (!arguments.parse(context.arguments, context.out)) return false;
  if (flags.files.empty()) throw ConfigError("no file is given; pass one scenario file or more");
  refuse_flags_among(flags.files);
  require_one_file(arguments, flags);
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

// The files that a run is written to as it goes, as far as they are asked for.
class RunFiles {
 public:
  RunFiles(const ScenarioFlags& flags, FileSystem& files) {
    if (!flags.log.empty()) {
      log_file_.emplace(files, flags.log);
      sinks_.add(log_.emplace(log_file_->stream()));
    }
    if (!flags.trace.empty()) {
      trace_file_.emplace(files, flags.trace);
      sinks_.add(trace_.emplace(trace_file_->stream()));
    }
  }
  sim::TraceSink* sink() { return sinks_.empty() ? nullptr : &sinks_; }
  void close() {
    trace_.reset();  // its last words
    if (log_file_) log_file_->close();
    if (trace_file_) trace_file_->close();
  }

 private:
  std::optional<OutputFile> log_file_;
  std::optional<OutputFile> trace_file_;
  std::optional<sim::TextTrace> log_;
  std::optional<sim::ChromeTrace> trace_;
  sim::TraceTee sinks_;
};

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

void write_flight_recorders(const std::vector<FlightRecorder>& recorders, FileSystem& files,
                            const std::string& folder) {
  files.make_directory(folder);
  for (std::size_t rank = 0; rank < recorders.size(); ++rank) {
    OutputFile file(files, folder + "/rank_" + std::to_string(rank) + ".json");
    file.stream() << recorders[rank].to_json();
    file.close();
  }
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
  RunFiles run_files(flags, context.runtime.files());
  const ExploreOptions options{.seed = flags.seed,
                               .stories = flags.explain,
                               .records = !flags.flight_recorder.empty(),
                               .trace = run_files.sink()};
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
    if (!flags.flight_recorder.empty()) {
      write_flight_recorders(result.told.recorders, context.runtime.files(), flags.flight_recorder);
    }
  }
  run_files.close();
  return all_hold ? kExitHolds : kExitFailed;
}

}  // namespace ddproof
