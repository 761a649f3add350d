// What a collective leaves in the buffers of all ranks, bit for bit as Gloo's algorithm does,
// computed at once and without messages.
#pragma once

#include <span>

#include "backends/api/call.h"
#include "backends/gloo/gloo_process_group.h"

namespace ddproof {

// `calls[r]` is rank r's call. Requires: one collective, made by all ranks with the same
// arguments, two or more ranks, `all_reduce` as the group was made with.
void compute_whole_data(std::span<const Call* const> calls, AllReduceAlgorithm all_reduce);

}  // namespace ddproof
