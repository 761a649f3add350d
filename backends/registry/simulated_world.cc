#include "backends/registry/simulated_world.h"

#include "backends/api/check.h"
#include "backends/checked/checked_process_group.h"

namespace ddproof {

#ifdef DDPROOF_WITH_GLOO

sim::Report run_simulated_world(const SimWorldOptions& options,
                                const std::function<void(RankContext&)>& body) {
  if (!options.world.checked) return run_sim_world(options, body);
  return run_sim_world(options, [&body](RankContext& context) {
    CheckedProcessGroup group(context.group, context.runtime);
    RankContext checked{group, context.runtime};
    body(checked);
  });
}

void meet_fate(Runtime& runtime, sim::RankFate fate) {
  auto* simulated = dynamic_cast<SimRuntime*>(&runtime);
  DDPROOF_CHECK(simulated != nullptr);
  simulated->meet(fate);
}

#else

sim::Report run_simulated_world(const SimWorldOptions&, const std::function<void(RankContext&)>&) {
  throw ConfigError("backend sim: built without Gloo (DDPROOF_WITH_GLOO=OFF)");
}

void meet_fate(Runtime&, sim::RankFate) {}

#endif

}  // namespace ddproof
