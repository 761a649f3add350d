#include "backends/registry/simulated_world.h"

#include "backends/api/check.h"
#include "backends/checked/checked_process_group.h"
#include "backends/recorder/recorded_process_group.h"

namespace ddproof {

#ifdef DDPROOF_WITH_GLOO

namespace {

void run_recorded(RankContext& rank, const std::function<void(RankContext&)>& body,
                  std::vector<FlightRecorder>* recorders) {
  if (recorders == nullptr) return body(rank);
  const auto number = static_cast<std::size_t>(rank.group.rank());
  RecordedProcessGroup group(rank.group, rank.runtime, recorders->at(number));
  RankContext recorded{group, rank.runtime};
  body(recorded);
}

}  // namespace

sim::Report run_simulated_world(const SimWorldOptions& options,
                                const std::function<void(RankContext&)>& body,
                                std::vector<FlightRecorder>* recorders) {
  return run_sim_world(options, [&](RankContext& context) {
    if (!options.world.checked) return run_recorded(context, body, recorders);
    CheckedProcessGroup group(context.group, context.runtime);
    RankContext checked{group, context.runtime};
    run_recorded(checked, body, recorders);
  });
}

WorldReport run_traced_world(const WorldOptions& options, sim::TraceSink& trace,
                             std::vector<FlightRecorder>& recorders,
                             const std::function<void(RankContext&)>& body) {
  const sim::Report report =
      run_simulated_world({.world = options, .trace = &trace}, body, &recorders);
  rethrow(report);
  return to_world_report(report);
}

void meet_fate(Runtime& runtime, sim::RankFate fate) {
  auto* simulated = dynamic_cast<SimRuntime*>(&runtime);
  DDPROOF_CHECK(simulated != nullptr);
  simulated->meet(fate);
}

#else

namespace {

[[noreturn]] void refuse() {
  throw ConfigError("backend sim: built without Gloo (DDPROOF_WITH_GLOO=OFF)");
}

}  // namespace

sim::Report run_simulated_world(const SimWorldOptions&, const std::function<void(RankContext&)>&,
                                std::vector<FlightRecorder>*) {
  refuse();
}

WorldReport run_traced_world(const WorldOptions&, sim::TraceSink&, std::vector<FlightRecorder>&,
                             const std::function<void(RankContext&)>&) {
  refuse();
}

void meet_fate(Runtime&, sim::RankFate) {}

#endif

}  // namespace ddproof
