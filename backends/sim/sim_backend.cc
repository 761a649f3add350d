#include "backends/sim/sim_backend.h"

#include "backends/api/error.h"
#include "backends/sim/sim_world.h"

namespace ddproof {

SimBackend::SimBackend() : capabilities_(sim_capabilities()) {}

WorldReport SimBackend::run_world(const WorldOptions& options,
                                  const std::function<void(RankContext&)>& body) {
  const sim::Report report = run_sim_world({.world = options, .stacks = &stacks_}, body);
  rethrow(report);
  return to_world_report(report);
}

std::unique_ptr<ProcessGroup> SimBackend::join(const Membership&, Runtime&, Store&) {
  throw CommError(CommErrorKind::kUnsupported,
                  "[sim] join: simulated ranks live in one process; use run_world, or the gloo "
                  "backend between processes");
}

}  // namespace ddproof
