// Whether all ranks draw from the same order, asked before they do: a rank with another epoch, seed
// or length would lose some samples and repeat others, and nothing would fail.
#pragma once

#include "backends/api/process_group.h"
#include "reference/data/distributed_sampler.h"

namespace ddproof {

// A collective call: one small all-reduce where ranks agree, so it may be made in each epoch.
// Throws the same ConfigError on all ranks, naming what differs with ranks and values, when their
// samplers differ in anything but the rank, or when a rank is not the sampler's.
void require_same_sampler(ProcessGroup& group, const DistributedSampler& sampler);

}  // namespace ddproof
