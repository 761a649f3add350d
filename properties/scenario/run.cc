#include "properties/scenario/run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/api/check.h"
#include "backends/registry/simulated_world.h"
#include "properties/scenario/program_run.h"
#include "simulator/fault_plan.h"
#include "simulator/pct.h"
#include "simulator/scheduler.h"

namespace ddproof::scenario {
namespace {

std::unique_ptr<sim::Scheduler> make_scheduler(const Schedule& schedule) {
  switch (schedule.scheduler) {
    case SchedulerKind::kRoundRobin: return std::make_unique<sim::RoundRobin>();
    case SchedulerKind::kRandom: return std::make_unique<sim::RandomWalk>();
    case SchedulerKind::kPct: return std::make_unique<sim::Pct>(schedule.depth, schedule.steps);
  }
  DDPROOF_CHECK(false);
}

// A fault that never strikes shows nothing: it is addressed wrongly.
std::string idle_faults(const sim::FaultPlan& planned, const sim::FaultPlan& fired) {
  for (const sim::Fault& fault : planned) {
    if (std::ranges::find(fired, fault) != fired.end()) continue;
    return "the fault \"" + sim::to_string(fault) + "\" took no effect";
  }
  return "";
}

ScenarioResult run_once(const Scenario& scenario, const Schedule& schedule, std::uint64_t seed,
                        bool stories, sim::StackPool& stacks) {
  SharedRun shared(scenario, seed, stories);
  const std::unique_ptr<sim::Scheduler> scheduler = make_scheduler(schedule);
  const SimWorldOptions options{.world = {.world_size = scenario.world_size,
                                          .ranks_per_node = scenario.ranks_per_node,
                                          .seed = seed,
                                          .timeout = scenario.timeout,
                                          .checked = scenario.checked},
                                .same_node = scenario.same_node,
                                .across_nodes = scenario.across_nodes,
                                .scheduler = scheduler.get(),
                                .faults = scenario.faults,
                                .stacks = &stacks,
                                .event_count_max = scenario.event_limit,
                                .timeouts_end_deadlocks = scenario.timeouts_end_deadlocks};
  const sim::Report report =
      run_simulated_world(options, [&](RankContext& rank) { ProgramRun(shared, rank).run(); });
  ScenarioResult result;
  result.verdict = judge(report, shared.digests);
  result.wrong = difference(scenario.expect, result.verdict, shared.guarded_works);
  if (result.wrong.empty()) result.wrong = idle_faults(scenario.faults, report.faults_fired);
  result.scheduler = scheduler_names()[static_cast<std::size_t>(schedule.scheduler)];
  result.seed = seed;
  result.digest = report.digest;
  result.virtual_time = Duration(report.virtual_time);
  result.messages = report.messages;
  result.bytes = report.bytes;
  result.stories = std::move(shared.stories);
  return result;
}

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario, const RunOptions& options) {
  sim::StackPool stacks;
  ScenarioResult told;
  std::int64_t runs = 0;
  for (const Schedule& schedule : scenario.schedules) {
    for (int run = 0; run < schedule.runs; ++run) {
      const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(run);
      ScenarioResult result = run_once(scenario, schedule, seed, options.stories, stacks);
      ++runs;
      const bool failed = !result.wrong.empty();
      if (runs == 1 || failed) told = std::move(result);
      told.runs = runs;
      if (failed) return told;
    }
  }
  return told;
}

}  // namespace ddproof::scenario
