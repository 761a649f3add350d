// The monitored barrier, over the store alone: it must say who is missing while the device or the
// network may be what is stuck.
//
// Each rank sets a key; rank 0 looks for them until the deadline and sets the verdict, which the
// others wait for. Keys of a call are removed in the next one, when nobody can still look at them.
#pragma once

#include <cstdint>
#include <optional>

#include "backends/membership/finding.h"
#include "backends/membership/store_group.h"
#include "backends/nccl/patience.h"

namespace ddproof::nccl {

// Who is missing, empty when all came. `number`: 1, 2, ... of the group's monitored barriers.
// Throws Interrupted when the group was closed, and when rank 0 does not answer for twice the
// timeout.
std::optional<Finding> monitored_barrier(const StoreWorld& world, const StoreGroup& group,
                                         const Call& call, std::uint64_t number,
                                         const Patience& patience);

}  // namespace ddproof::nccl
