#include "properties/scenario/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "backends/api/digest.h"
#include "backends/api/error.h"
#include "properties/scenario/json_node.h"
#include "properties/scenario/parse_call.h"
#include "properties/scenario/parse_steps.h"
#include "properties/scenario/program_run.h"
#include "simulator/probes.h"
#include "simulator/time.h"

namespace ddproof::scenario {
namespace {

constexpr int kRunsMax = 1'000'000;
constexpr std::uint64_t kSearchRuns = 10'000;
constexpr std::size_t kGroupsMax = 1'000;
constexpr std::int64_t kDrawSeedsMax = 100'000;
constexpr std::uint64_t kEventsDefault = 100'000'000;
// Measured with a barrier and an all_reduce of 10,000 checked ranks.
constexpr std::int64_t kRankKilobytes = 265;

int parse_world_size(const JsonNode& node) {
  const auto size = node.whole_number();
  if (size && *size > kWorldSizeMax && *size < 1'000'000'000) {
    node.fail(
        fmt::format("is {}, which needs about {} MB and {} memory mappings, of which a "
                    "process has 65530; allowed: 1 to {}",
                    *size, *size * kRankKilobytes / 1000, *size * 6, kWorldSizeMax));
  }
  return static_cast<int>(node.whole(1, kWorldSizeMax));
}

void parse_link(JsonObject& network, const std::string& name, sim::LinkClass& link) {
  const auto node = network.find(name);
  if (!node) return;
  JsonObject object(*node);
  if (const auto latency = object.find("latency")) link.latency = latency->duration().count();
  if (const auto rate = object.find("bytes_per_second")) {
    link.bytes_per_second = static_cast<std::uint64_t>(rate->whole(1, 1'000'000'000'000'000));
  }
  object.finish();
}

void parse_network(JsonObject& top, Scenario& scenario) {
  scenario.same_node = sim::NetworkOptions{}.same_node;
  scenario.across_nodes = sim::NetworkOptions{}.across_nodes;
  const auto node = top.find("network");
  if (!node) return;
  JsonObject network(*node);
  parse_link(network, "same_node", scenario.same_node);
  parse_link(network, "across_nodes", scenario.across_nodes);
  network.finish();
}

void parse_compute(JsonObject& top, Scenario& scenario) {
  const auto node = top.find("compute");
  if (!node) return;
  JsonObject compute(*node);
  constexpr std::int64_t kMost = 1'000'000'000'000'000'000;
  if (const auto rate = compute.find("flops_per_second")) {
    scenario.compute.flops_per_second = rate->whole(1, kMost);
  }
  if (const auto rate = compute.find("bytes_per_second")) {
    scenario.compute.bytes_per_second = rate->whole(1, kMost);
  }
  compute.finish();
}

void parse_training(JsonObject& top, Scenario& scenario) {
  const auto node = top.find("training");
  if (!node) return;
  JsonObject training(*node);
  if (const auto momentum = training.find("momentum")) {
    scenario.training.momentum = momentum->number();
    const bool is_allowed = scenario.training.momentum >= 0 && scenario.training.momentum < 1;
    if (!is_allowed) momentum->refuse("0 or more, less than 1");
  }
  if (const auto flag = training.find("find_unused_parameters")) {
    scenario.training.find_unused_parameters = flag->boolean();
  }
  training.finish();
}

sim::CampaignOptions parse_schedule(const JsonNode& node) {
  JsonObject object(node);
  sim::CampaignOptions schedule;
  schedule.strategy =
      static_cast<sim::Strategy>(object.require("scheduler").choice(scheduler_names()));
  const auto runs = object.find("runs");
  const auto count = [](const std::optional<JsonNode>& given, std::uint64_t otherwise) {
    return given ? static_cast<std::uint64_t>(given->whole(1, kRunsMax)) : otherwise;
  };
  switch (schedule.strategy) {
    case sim::Strategy::kFirstCome:
    case sim::Strategy::kRandomWalk: schedule.runs = count(runs, 1); break;
    case sim::Strategy::kPct:
      schedule.runs = count(runs, 1);
      if (const auto depth = object.find("depth")) {
        schedule.pct_depth = static_cast<int>(depth->whole(1, 100));
      }
      if (const auto steps = object.find("steps")) {
        schedule.pct_steps = static_cast<std::uint64_t>(steps->whole(1, 1'000'000'000));
      }
      break;
    case sim::Strategy::kSearch: schedule.search_runs_max = count(runs, kSearchRuns); break;
    case sim::Strategy::kPortfolio:
      schedule.runs = count(runs, schedule.runs);
      schedule.search_runs_max = count(object.find("search_runs"), schedule.search_runs_max);
      break;
  }
  object.finish();
  return schedule;
}

void parse_schedules(JsonObject& top, Scenario& scenario) {
  const auto node = top.find("schedules");
  if (!node) {
    scenario.schedules = {{.strategy = sim::Strategy::kRandomWalk, .runs = 1}};
    return;
  }
  for (const JsonNode& element : node->elements()) {
    scenario.schedules.push_back(parse_schedule(element));
  }
  if (scenario.schedules.empty()) node->fail("is empty; allowed: one schedule or more");
}

// A search runs message by message, and would not find the decisions of its runs again. The times
// of a whole call are measured by as many ranks again.
void require_room_for_whole_calls(JsonObject& top, const Scenario& scenario) {
  if (scenario.fidelity != Fidelity::kWhole) return;
  const auto searches = [](const sim::CampaignOptions& schedule) {
    return schedule.strategy == sim::Strategy::kSearch ||
           schedule.strategy == sim::Strategy::kPortfolio;
  };
  if (std::ranges::any_of(scenario.schedules, searches)) {
    top.require("fidelity")
        .fail(
            "is \"whole\", which the schedulers \"exhaustive\" and \"campaign\" cannot take: they "
            "search message by message; leave it out");
  }
  if (scenario.world_size > kWholeWorldSizeMax) {
    top.require("fidelity")
        .fail(fmt::format("is \"whole\" for {} ranks; allowed: up to {}", scenario.world_size,
                          kWholeWorldSizeMax));
  }
}

void parse_faults(JsonObject& top, Scenario& scenario) {
  if (const auto seeds = top.find("drawn_faults")) {
    scenario.drawn_faults = parse_set(*seeds, kDrawSeedsMax, "seed");
  }
  const auto node = top.find("faults");
  if (!node) return;
  for (const JsonNode& element : node->elements()) {
    const std::string text = element.text();
    try {
      const sim::Fault fault = sim::parse_fault(text);
      sim::check_fault_plan({fault}, scenario.world_size);
      scenario.faults.push_back(fault);
    } catch (const std::invalid_argument& error) {
      element.fail(std::string("is no fault: ") + error.what());
    }
  }
}

void parse_liveness(JsonObject& top, Scenario& scenario) {
  const auto node = top.find("liveness");
  if (!node) return;
  JsonObject object(*node);
  sim::Liveness& liveness = scenario.liveness.emplace();
  liveness.faults_stop = object.require("faults_stop").duration().count();
  const JsonNode within = object.require("within");
  liveness.within = within.positive_duration().count();
  const auto core = object.find("core");
  const RankSet ranks = core ? parse_set(*core, scenario.world_size, "rank")
                             : RankSet::parse("*", scenario.world_size, "rank");
  for (const std::int64_t rank : ranks.numbers()) liveness.core.push_back(static_cast<int>(rank));
  object.finish();
}

void parse_placement(JsonObject& top, Scenario& scenario) {
  const auto per_node = top.find("ranks_per_node");
  if (per_node) {
    const auto ranks = static_cast<int>(per_node->whole(1, scenario.world_size));
    scenario.placement = place_in_blocks(scenario.world_size, ranks);
  }
  const auto nodes = top.find("nodes");
  if (!nodes) return;
  if (per_node) nodes->fail("stands beside ranks_per_node; give one of them");
  std::vector<int> turns;
  for (const JsonNode& node : nodes->elements()) {
    turns.push_back(static_cast<int>(node.whole(0, kWorldSizeMax - 1)));
  }
  if (turns.empty()) nodes->fail("is empty; allowed: the nodes of the ranks, in turns");
  if (turns.size() > static_cast<std::size_t>(scenario.world_size)) {
    nodes->fail(
        fmt::format("has {} entries for {} rank{}; allowed: one for each rank, or fewer, "
                    "which are taken in turns",
                    turns.size(), scenario.world_size, scenario.world_size == 1 ? "" : "s"));
  }
  scenario.placement = place_in_turns(scenario.world_size, turns);
}

// How many ranks the node has that has the most.
int largest_node(const Scenario& scenario) {
  if (scenario.placement.empty()) return scenario.world_size;
  std::map<int, int> ranks;  // by node
  int largest = 0;
  for (const int node : scenario.placement) largest = std::max(largest, ++ranks[node]);
  return largest;
}

// The ranks of the program `key`. What cannot be read names nobody: it is refused later.
std::vector<int> takers_of(JsonObject programs, const std::string& key, int world_size) {
  std::vector<bool> is_named(static_cast<std::size_t>(world_size), key == "*");
  for (const auto& [other, node] : programs.members()) {
    if (other == "*" || (key != "*" && other != key)) continue;
    try {
      for (const std::int64_t rank : RankSet::parse(other, world_size, "rank").numbers()) {
        is_named[static_cast<std::size_t>(rank)] = key != "*";
      }
    } catch (const ConfigError&) {
    }
  }
  std::vector<int> takers;
  for (int rank = 0; rank < world_size; ++rank) {
    if (is_named[static_cast<std::size_t>(rank)]) takers.push_back(rank);
  }
  return takers;
}

void parse_groups(JsonObject& top, Scenario& scenario) {
  const auto node = top.find("groups");
  if (!node) return;
  JsonObject groups(*node);
  scenario.groups_line = node->line();
  for (const auto& [name, ranks] : groups.members()) {
    if (scenario.groups.size() == kGroupsMax) {
      node->fail(fmt::format("has more than {} groups", kGroupsMax));
    }
    if (name.empty()) ranks.fail("has no name; a group needs one");
    Group group{name, {}};
    std::set<int> members;
    for (const JsonNode& member : ranks.elements()) {
      const auto rank = static_cast<int>(member.whole(0, scenario.world_size - 1));
      if (!members.insert(rank).second) member.fail(fmt::format("names rank {} twice", rank));
      group.ranks.push_back(rank);
    }
    if (group.ranks.empty()) ranks.fail("is empty; allowed: the ranks of the group, one or more");
    scenario.groups.push_back(std::move(group));
  }
}

// "*" stands for the ranks that no other program names.
void parse_programs(JsonObject& top, Scenario& scenario) {
  JsonObject programs(top.require("programs"));
  StepContext context{scenario, scenario.world_size, largest_node(scenario), scenario.payload};
  std::optional<Program> others;
  for (const auto& [key, node] : programs.members()) {
    Program program;
    try {
      program.ranks = RankSet::parse(key, scenario.world_size, "rank");
    } catch (const ConfigError& error) {
      programs.node().fail(std::string("has a wrong key: ") + error.what());
    }
    if (!scenario.groups.empty()) context.takers = takers_of(programs, key, scenario.world_size);
    program.steps = parse_steps(node, context);
    if (key == "*") {
      others = std::move(program);
      continue;
    }
    for (const Program& earlier : scenario.programs) {
      if (const auto rank = earlier.ranks.overlap(program.ranks)) {
        node.fail(fmt::format("names rank {}, which has a program already", *rank));
      }
    }
    scenario.programs.push_back(std::move(program));
  }
  if (others) {
    scenario.programs.push_back(std::move(*others));
    return;
  }
  for (int rank = 0; rank < scenario.world_size; ++rank) {
    const auto has = [rank](const Program& program) { return program.ranks.contains(rank); };
    if (std::ranges::any_of(scenario.programs, has)) continue;
    programs.node().fail(
        fmt::format("has none for rank {}; add it, or \"*\" for all others", rank));
  }
}

void require_few_steps(const JsonNode& programs, const Scenario& scenario) {
  std::int64_t steps = 0;
  for (int rank = 0; rank < scenario.world_size; ++rank) {
    steps = sim::add_time(steps, count_steps(scenario.program_of(rank), scenario.world_size));
  }
  if (steps <= kStepsMax) return;
  programs.fail(fmt::format("take up to {} steps over all ranks, repeats unrolled; allowed: {}",
                            steps, kStepsMax));
}

void parse_expectation(JsonObject& top, Scenario& scenario) {
  JsonObject object(top.require("expect"));
  Expectation& expect = scenario.expect;
  const JsonNode outcome = object.require("outcome");
  for (const JsonNode& one : outcome.is_list() ? outcome.elements() : std::vector{outcome}) {
    expect.outcomes.push_back(static_cast<Outcome>(one.choice(outcome_names())));
  }
  if (expect.outcomes.empty()) outcome.fail("is empty; allowed: one outcome or more");
  if (const auto culprits = object.find("culprits")) {
    expect.culprits.emplace();
    for (const JsonNode& rank : culprits->elements()) {
      expect.culprits->push_back(static_cast<int>(rank.whole(0, scenario.world_size - 1)));
    }
    std::ranges::sort(*expect.culprits);
  }
  if (const auto operation = object.find("operation")) {
    if (operation->is_list()) {
      for (const JsonNode& part : operation->elements()) expect.operation.push_back(part.text());
    } else {
      expect.operation.push_back(operation->text());
    }
  }
  if (const auto works = object.find("guarded_works")) {
    expect.guarded_works = works->whole(0, kStepsMax);
  }
  object.finish();
}

std::vector<std::string> probe_names() {
  std::vector<std::string> names;
  for (const std::string_view place : {sim::kCrashInside, sim::kHangInside}) {
    for (const std::string& operation : operation_names()) {
      names.push_back(std::string(place) + operation);
    }
  }
  names.emplace_back(kMoreRanksThanSamples);
  names.emplace_back(kTimeoutBesideGuard);
  return names;
}

void parse_probes(JsonObject& top, Scenario& scenario) {
  const auto node = top.find("probes");
  if (!node) return;
  const std::vector<std::string> names = probe_names();
  for (const JsonNode& probe : node->elements()) {
    scenario.probes.push_back(names[probe.choice(names)]);
  }
}

// Of all that decides what a run does, however it is laid out in the file. Sites name the file.
std::uint64_t digest_of_run(Json document, const std::string& file) {
  for (const char* key :
       {"fact", "source", "schedules", "faults", "drawn_faults", "expect", "probes"}) {
    document.erase(key);
  }
  return digest_of(document.dump(-1, ' ', true, Json::error_handler_t::replace), digest_of(file));
}

std::string base_name(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

Scenario parse_scenario(std::string_view text, const std::string& file) {
  const JsonText document(text, file);
  JsonObject top{JsonNode(document)};
  Scenario scenario;
  scenario.file = base_name(file);
  scenario.fact = top.require("fact").text();
  if (const auto source = top.find("source")) scenario.source = source->text();
  scenario.world_size = parse_world_size(top.require("world_size"));
  parse_placement(top, scenario);
  if (const auto timeout = top.find("timeout")) scenario.timeout = timeout->positive_duration();
  scenario.event_limit = kEventsDefault;
  if (const auto limit = top.find("event_limit")) {
    scenario.event_limit = static_cast<std::uint64_t>(limit->whole(1, 10'000'000'000));
  }
  if (const auto checked = top.find("checked")) scenario.checked = checked->boolean();
  if (const auto wait = top.find("timeouts_end_deadlocks")) {
    scenario.timeouts_end_deadlocks = wait->boolean();
  }
  if (const auto fidelity = top.find("fidelity")) {
    scenario.fidelity = static_cast<Fidelity>(fidelity->choice(fidelity_names()));
  }
  if (const auto payload = top.find("payload")) {
    scenario.payload = static_cast<PayloadMode>(payload->choice(payload_names()));
  }
  parse_network(top, scenario);
  parse_compute(top, scenario);
  parse_training(top, scenario);
  parse_faults(top, scenario);
  parse_liveness(top, scenario);
  parse_schedules(top, scenario);
  require_room_for_whole_calls(top, scenario);
  parse_groups(top, scenario);
  parse_programs(top, scenario);
  parse_expectation(top, scenario);
  parse_probes(top, scenario);
  top.finish();
  require_few_steps(*top.find("programs"), scenario);
  scenario.digest = digest_of_run(document.value(), scenario.file);
  return scenario;
}

}  // namespace ddproof::scenario
