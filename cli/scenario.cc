// ddproof scenario: runs what files say that ranks do, and compares what comes of it with what they
// expect.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/api/files.h"
#include "cli/arguments.h"
#include "cli/subcommand.h"
#include "properties/scenario/parse.h"
#include "properties/scenario/run.h"
#include "simulator/time.h"

namespace ddproof {
namespace {

using scenario::RankStory;
using scenario::Scenario;
using scenario::ScenarioResult;
using scenario::StoryLine;

struct ScenarioFlags {
  std::vector<std::string> files;
  scenario::RunOptions options;
  bool json = false;
};

// False when only help was asked for.
bool parse(CommandContext& context, ScenarioFlags& flags) {
  Arguments arguments("ddproof scenario",
                      "Runs scenario files on simulated ranks: what each rank does, and what must "
                      "come of it.\nThe form of a file: properties/scenario/README.md.");
  arguments.flag("--explain", flags.options.stories, "tell what each rank did, in virtual time");
  arguments.flag("--json", flags.json, "one JSON object per file and line");
  arguments.number("--seed", flags.options.seed, "of the first run of each schedule");
  arguments.rest("files", flags.files, "the files, after all flags");
  if (!arguments.parse(context.arguments, context.out)) return false;
  if (flags.files.empty()) throw ConfigError("no file is given; pass one scenario file or more");
  return true;
}

Scenario read_scenario(const std::string& path, FileSystem& files) {
  std::vector<std::byte> bytes;
  try {
    bytes = read_file(files, path);
  } catch (const DataError& error) {
    throw ConfigError(error.what());
  }
  return scenario::parse_scenario({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                  path);
}

std::string replay_line(const std::string& path, const ScenarioResult& result) {
  return fmt::format("ddproof scenario --explain --seed {} {}", result.seed, path);
}

void print_stories(const Scenario& what, const std::vector<RankStory>& stories, std::ostream& out) {
  const int per_node = what.ranks_per_node == 0 ? what.world_size : what.ranks_per_node;
  for (std::size_t rank = 0; rank < stories.size(); ++rank) {
    out << fmt::format("  rank {} on node {}\n", rank, static_cast<int>(rank) / per_node);
    for (const StoryLine& line : stories[rank]) out << "  " << to_string(line) << "\n";
  }
}

void print_text(const std::string& path, const Scenario& what, const ScenarioResult& result,
                bool explain, std::ostream& out) {
  out << fmt::format("{} {}: {}\n", result.wrong.empty() ? "holds " : "FAILED", path, what.fact);
  out << fmt::format("  {} at t={}, {} run{}, {} messages\n", describe(result.verdict),
                     sim::format_time(result.virtual_time.count()), result.runs,
                     result.runs == 1 ? "" : "s", result.messages);
  if (!result.verdict.text.empty()) out << "  " << result.verdict.text << "\n";
  if (explain) print_stories(what, result.stories, out);
  if (result.wrong.empty()) return;
  out << "  " << result.wrong << "\n  replay: " << replay_line(path, result) << "\n";
}

nlohmann::ordered_json to_json(const std::vector<RankStory>& stories) {
  auto ranks = nlohmann::ordered_json::array();
  for (const RankStory& story : stories) {
    auto lines = nlohmann::ordered_json::array();
    for (const StoryLine& line : story) {
      nlohmann::ordered_json json = {{"step", line.step}, {"begin_ns", line.begin}};
      if (line.end != sim::kNever) json["end_ns"] = line.end;
      if (!line.outcome.empty()) json["outcome"] = line.outcome;
      lines.push_back(std::move(json));
    }
    ranks.push_back(std::move(lines));
  }
  return ranks;
}

void print_json(const std::string& path, const Scenario& what, const ScenarioResult& result,
                bool explain, std::ostream& out) {
  const auto outcome = static_cast<std::size_t>(result.verdict.outcome);
  nlohmann::ordered_json json = {{"file", path},
                                 {"fact", what.fact},
                                 {"holds", result.wrong.empty()},
                                 {"outcome", scenario::outcome_names()[outcome]},
                                 {"culprits", result.verdict.culprits},
                                 {"verdict", result.verdict.text},
                                 {"scheduler", result.scheduler},
                                 {"seed", result.seed},
                                 {"runs", result.runs},
                                 {"virtual_time_ns", result.virtual_time.count()},
                                 {"messages", result.messages},
                                 {"bytes", result.bytes},
                                 {"digest", fmt::format("{:016x}", result.digest)}};
  if (!what.source.empty()) json["source"] = what.source;
  if (!result.wrong.empty()) {
    json["failure"] = result.wrong;
    json["replay"] = replay_line(path, result);
  }
  if (explain) json["ranks"] = to_json(result.stories);
  out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace

int scenario_command(CommandContext& context) {
  ScenarioFlags flags;
  if (!parse(context, flags)) return kExitHolds;
  // All are read first: a file that is wrong is told before any time is spent.
  std::vector<Scenario> scenarios;
  for (const std::string& path : flags.files) {
    scenarios.push_back(read_scenario(path, context.runtime.files()));
  }
  bool all_hold = true;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const ScenarioResult result = run_scenario(scenarios[i], flags.options);
    all_hold = all_hold && result.wrong.empty();
    const auto print = flags.json ? print_json : print_text;
    print(flags.files[i], scenarios[i], result, flags.options.stories, context.out);
    context.out.flush();
  }
  return all_hold ? kExitHolds : kExitFailed;
}

}  // namespace ddproof
