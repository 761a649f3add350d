// The comparison of one call between ranks, over the group that will run it.
#pragma once

#include "backends/api/process_group.h"

namespace ddproof {

// Returns when every rank of `group` is about to make the same collective call as `call`. Throws
// CommError{kMismatch} on all of them otherwise: it names the ranks that differ from the majority
// (culprits) and each side's call. Other CommErrors as the group's calls.
void compare_collective(ProcessGroup& group, const Call& call, Duration timeout);

// Returns when the peer's recv fits this send, or the other way round; else throws
// CommError{kMismatch} on both and aborts the group, so that no other rank waits for the two.
void compare_with_peer(ProcessGroup& group, const Call& call, Duration timeout);

}  // namespace ddproof
