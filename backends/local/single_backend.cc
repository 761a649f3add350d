#include "backends/local/single_backend.h"

#include "backends/local/local_process_group.h"
#include "backends/local/os_runtime.h"

namespace ddproof {
namespace {

void require_one_rank(int world_size) {
  if (world_size == 1) return;
  throw ConfigError("backend single: world size is " + std::to_string(world_size) +
                    ", allowed is 1; use --backend sim or gloo for more ranks");
}

}  // namespace

SingleBackend::SingleBackend() : capabilities_(local_capabilities()) {}

WorldReport SingleBackend::run_world(const WorldOptions& options,
                                     const std::function<void(RankContext&)>& body) {
  require_one_rank(options.world_size);
  OsRuntime runtime(options.seed);
  LocalProcessGroup group(options.timeout);
  RankContext context{group, runtime};
  body(context);
  return {};
}

std::unique_ptr<ProcessGroup> SingleBackend::join(const Membership& membership, Runtime&, Store&) {
  require_one_rank(membership.world_size);
  if (membership.rank != 0) {
    throw ConfigError("backend single: rank is " + std::to_string(membership.rank) +
                      ", allowed is 0");
  }
  return std::make_unique<LocalProcessGroup>(membership.timeout);
}

}  // namespace ddproof
