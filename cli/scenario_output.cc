#include "cli/scenario_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/run_files.h"
#include "cli/shell_word.h"
#include "simulator/time.h"

namespace ddproof {
namespace {

using nlohmann::ordered_json;
using scenario::Explored;
using scenario::RankStory;
using scenario::Scenario;
using scenario::ScenarioResult;
using scenario::StoryLine;

const std::string& name_of(sim::Strategy strategy) {
  return scenario::scheduler_names()[static_cast<std::size_t>(strategy)];
}

// Empty where there is no run that is wrong.
std::string replay_line(const std::string& path, const Scenario& what,
                        const ScenarioResult& result) {
  if (result.told.wrong.empty() || !result.recorded) return "";
  const bool are_own = result.faults == what.faults;
  return fmt::format("ddproof scenario --explain --schedule {}{} {}", to_string(*result.recorded),
                     are_own ? "" : " --faults " + shell_word(sim::to_string(result.faults)),
                     shell_word(path));
}

// ", rank 1 of group tp": where a rank is besides the world.
std::string groups_of(const Scenario& what, int rank) {
  std::string text;
  for (const scenario::Group& group : what.groups) {
    const auto place = std::ranges::find(group.ranks, rank) - group.ranks.begin();
    if (place < std::ssize(group.ranks))
      text += fmt::format(", rank {} of group {}", place, group.name);
  }
  return text;
}

void print_stories(const Scenario& what, const std::vector<RankStory>& stories, std::ostream& out) {
  for (std::size_t rank = 0; rank < stories.size(); ++rank) {
    const auto number = static_cast<int>(rank);
    out << fmt::format("  rank {} on node {}{}\n", rank, node_of(what.placement, number),
                       groups_of(what, number));
    for (const StoryLine& line : stories[rank]) out << "  " << to_string(line) << "\n";
  }
}

// "passes 20, lost rank 5".
std::string counts(const std::vector<std::uint64_t>& numbers, auto&& name) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name(i), numbers[i]);
  }
  return text;
}

const char* fault_name(std::size_t kind) { return to_string(static_cast<sim::FaultKind>(kind)); }

const std::string& outcome_name(std::size_t outcome) { return scenario::outcome_names()[outcome]; }

// What the schedules show, where that is more than that their runs were as expected.
void print_explored(const Scenario& what, const ScenarioResult& result, std::ostream& out) {
  for (const Explored& explored : result.explored) {
    const bool claims = explored.strategy != sim::Strategy::kFirstCome &&
                        explored.strategy != sim::Strategy::kRandomWalk;
    if (!claims || explored.result.runs == 0 || !explored.result.failure.empty()) continue;
    const bool is_search = explored.strategy == sim::Strategy::kSearch;
    out << "  " << (is_search ? "" : name_of(explored.strategy) + ": ") << claim_of(explored.result)
        << "\n";
  }
  if (!what.drawn_faults || result.explored.empty()) return;
  out << "  outcomes: " << counts(result.outcomes, outcome_name) << "\n";
  out << "  faults that struck: " << counts(result.faults_struck, fault_name) << "\n";
}

ordered_json to_json(const std::vector<RankStory>& stories) {
  auto ranks = ordered_json::array();
  for (const RankStory& story : stories) {
    auto lines = ordered_json::array();
    for (const StoryLine& line : story) {
      ordered_json json = {{"step", line.step}, {"begin_ns", line.begin}};
      if (line.end != sim::kNever) json["end_ns"] = line.end;
      if (!line.outcome.empty()) json["outcome"] = line.outcome;
      lines.push_back(std::move(json));
    }
    ranks.push_back(std::move(lines));
  }
  return ranks;
}

ordered_json to_json(const Explored& explored) {
  const sim::CampaignResult& result = explored.result;
  ordered_json json = {{"scheduler", name_of(explored.strategy)},
                       {"runs", result.runs},
                       {"fibers", result.fibers},
                       {"decisions", result.decisions}};
  if (result.traces > 0) {
    json["exhausted"] = result.exhausted;
    json["states"] = result.states;
    json["traces"] = result.traces;
  }
  if (!result.gap.empty()) json["gap"] = result.gap;
  for (const sim::DepthBound& bound : result.bounds) {
    json["bounds"].push_back(
        {{"depth", bound.depth}, {"hit_probability", bound.hit}, {"miss_probability", bound.miss}});
  }
  return json;
}

ordered_json to_json(const std::vector<sim::RankReport>& ranks) {
  auto traffic = ordered_json::array();
  for (const sim::RankReport& rank : ranks) {
    traffic.push_back({{"messages_sent", rank.messages_sent},
                       {"bytes_sent", rank.bytes_sent},
                       {"messages_received", rank.messages_received},
                       {"bytes_received", rank.bytes_received}});
  }
  return traffic;
}

ordered_json to_json(const sim::FaultPlan& faults) {
  auto texts = ordered_json::array();
  for (const sim::Fault& fault : faults) texts.push_back(sim::to_string(fault));
  return texts;
}

}  // namespace

void print_text(const std::string& path, const Scenario& what, const ScenarioResult& result,
                bool explain, std::ostream& out) {
  const sim::Report& report = result.told.report;
  out << fmt::format("{} {}: {}\n", result.wrong.empty() ? "holds " : "FAILED", path, what.fact);
  out << fmt::format("  {}: {} run{}, {} messages, {} of virtual time\n",
                     describe(result.told.verdict), result.runs, result.runs == 1 ? "" : "s",
                     report.messages, sim::format_time(report.virtual_time));
  if (!result.told.verdict.text.empty()) out << "  " << result.told.verdict.text << "\n";
  if (what.drawn_faults && !report.faults_fired.empty()) {
    out << "  faults that struck this run: " << sim::to_string(report.faults_fired) << "\n";
  }
  print_explored(what, result, out);
  if (explain) print_stories(what, result.told.stories, out);
  if (result.wrong.empty()) return;
  out << "  " << result.wrong << "\n";
  print_last_calls(result.told.recorders, 0, out);
  const std::string replay = replay_line(path, what, result);
  if (!replay.empty()) out << "  replay: " << replay << "\n";
}

void print_json(const std::string& path, const Scenario& what, const ScenarioResult& result,
                bool explain, std::ostream& out) {
  const sim::Report& report = result.told.report;
  const scenario::Verdict& verdict = result.told.verdict;
  ordered_json json = {{"file", path},
                       {"fact", what.fact},
                       {"holds", result.wrong.empty()},
                       {"outcome", outcome_name(static_cast<std::size_t>(verdict.outcome))},
                       {"culprits", verdict.culprits},
                       {"verdict", verdict.text},
                       {"scheduler", name_of(result.strategy)},
                       {"seed", result.seed},
                       {"runs", result.runs},
                       {"virtual_time_ns", report.virtual_time},
                       {"messages", report.messages},
                       {"bytes", report.bytes},
                       {"traffic", to_json(report.ranks)},
                       {"digest", fmt::format("{:016x}", report.digest)},
                       {"faults", to_json(result.faults)},
                       {"faults_fired", to_json(report.faults_fired)}};
  if (!what.source.empty()) json["source"] = what.source;
  json["schedules"] = ordered_json::array();
  for (const Explored& explored : result.explored) json["schedules"].push_back(to_json(explored));
  if (!result.wrong.empty()) json["failure"] = result.wrong;
  const std::string replay = replay_line(path, what, result);
  if (!replay.empty()) json["replay"] = replay;
  if (explain) json["ranks"] = to_json(result.told.stories);
  out << json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace ddproof
