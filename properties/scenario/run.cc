#include "properties/scenario/run.h"

#include <algorithm>
#include <utility>

#include "backends/registry/simulated_world.h"
#include "properties/scenario/program_run.h"
#include "simulator/fault_plan.h"

namespace ddproof::scenario {
namespace {

// A planned fault that never strikes shows nothing: it is addressed wrongly.
std::string idle_faults(const sim::FaultPlan& planned, const sim::FaultPlan& fired) {
  for (const sim::Fault& fault : planned) {
    if (std::ranges::find(fired, fault) != fired.end()) continue;
    return "the fault \"" + sim::to_string(fault) + "\" took no effect";
  }
  return "";
}

}  // namespace

Run run_once(const Scenario& scenario, const sim::RunSettings& settings,
             const RunOptions& options) {
  SharedRun shared(scenario, settings.seed, options.stories);
  const WorldOptions ranks{.world_size = scenario.world_size,
                           .placement = scenario.placement,
                           .seed = settings.seed,
                           .timeout = scenario.timeout,
                           .checked = scenario.checked};
  const SimWorldOptions world{.world = ranks,
                              .same_node = scenario.same_node,
                              .across_nodes = scenario.across_nodes,
                              .scheduler = settings.scheduler,
                              .faults = options.faults,
                              .trace = settings.trace,
                              .observer = settings.observer,
                              .liveness = scenario.liveness ? &*scenario.liveness : nullptr,
                              .stacks = options.stacks,
                              .event_count_max = scenario.event_limit,
                              .timeouts_end_deadlocks = scenario.timeouts_end_deadlocks,
                              .payload = scenario.payload,
                              .fidelity = scenario.fidelity};
  Run run;
  if (options.records) run.recorders.resize(static_cast<std::size_t>(scenario.world_size));
  run.report = run_simulated_world(
      world, [&](RankContext& rank) { ProgramRun(shared, rank).run(); },
      options.records ? &run.recorders : nullptr);
  run.verdict = judge(run.report, shared.replicas.divergence());
  run.wrong = difference(scenario.expect, run.verdict, shared.guarded_works);
  if (run.wrong.empty()) run.wrong = idle_faults(scenario.faults, run.report.faults_fired);
  run.stories = std::move(shared.stories);
  return run;
}

}  // namespace ddproof::scenario
