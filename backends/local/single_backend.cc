#include "backends/local/single_backend.h"

#include "backends/local/local_process_group.h"
#include "backends/local/os_runtime.h"

namespace ddproof {

SingleBackend::SingleBackend() : capabilities_(local_capabilities()) {}

WorldReport SingleBackend::run_world(const WorldOptions& options,
                                     const std::function<void(RankContext&)>& body) {
  if (options.world_size != 1) {
    throw ConfigError("backend single: world size is " + std::to_string(options.world_size) +
                      ", allowed is 1; use --backend sim or gloo for more ranks");
  }
  OsRuntime runtime(options.seed);
  LocalProcessGroup group(options.timeout);
  RankContext context{group, runtime};
  body(context);
  return {};
}

std::unique_ptr<ProcessGroup> SingleBackend::join(const Membership&, Runtime&, Store&) {
  throw CommError(
      CommErrorKind::kUnsupported,
      "[single] join: its one rank lives alone; use the gloo backend between processes");
}

}  // namespace ddproof
