#include "backends/checked/checked_backend.h"

#include "backends/checked/checked_process_group.h"

namespace ddproof {

WorldReport CheckedBackend::run_world(const WorldOptions& options,
                                      const std::function<void(RankContext&)>& body) {
  if (!options.checked) return inner_->run_world(options, body);
  return inner_->run_world(options, [&body](RankContext& context) {
    CheckedProcessGroup group(context.group, context.runtime);
    RankContext checked{group, context.runtime};
    body(checked);
  });
}

std::unique_ptr<ProcessGroup> CheckedBackend::join(const Membership& membership, Runtime& runtime,
                                                   Store& store) {
  std::unique_ptr<ProcessGroup> group = inner_->join(membership, runtime, store);
  if (!membership.checked) return group;
  return std::make_unique<CheckedProcessGroup>(std::move(group), runtime);
}

}  // namespace ddproof
