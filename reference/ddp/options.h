// What a user may choose about DistributedDataParallel. A value; the same on all ranks, which the
// wrapper checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/api/process_group.h"
#include "backends/api/runtime.h"
#include "reference/ddp/buckets.h"

namespace ddproof {

enum class Averaging : std::uint8_t {
  // PyTorch's: each rank's gradient times the rounded reciprocal of the world size, then summed. A
  // mean of means: right where all ranks have equally many samples in a step.
  kWorld,
  // Summed, then times the rounded reciprocal of the samples of all ranks since the last update,
  // which count_samples() was told. For gradients that are sums over samples: then uneven batches
  // and accumulation over several of them give the mean over all samples.
  kSamples,
  // Summed: the gradient of a loss that is a sum over all samples of all ranks.
  kSum,
};

// "world", "samples", "sum".
const char* to_string(Averaging averaging);

struct DdpOptions {
  // A bucket closes when it has reached this size; the first one at 1 MiB.
  std::int64_t bucket_cap_bytes = kDefaultBucketBytes;
  // Of a run that goes on: Reducer::gradient_order() of the one before. Empty: a new run.
  std::vector<std::size_t> gradient_order;
  // Parameters that backward does not reach take part with zeros, instead of failing the step. One
  // that no rank reached keeps its gradient. Costs a small all-reduce each step.
  bool find_unused_parameters = false;
  // Every step reaches the same parameters, equally often, as the first, which reduces nothing
  // before backward has ended. Parameters may be unused and need no all-reduce to say so later.
  bool static_graph = false;
  // Rank 0's buffers are sent to all ranks before a forward that follows a synchronised one.
  bool broadcast_buffers = true;
  Averaging averaging = Averaging::kWorld;
  // Names of parameters and buffers that stay each rank's own.
  std::vector<std::string> parameters_to_ignore;
  // For statistics of time; it outlives the wrapper. Null: none are kept.
  Runtime* runtime = nullptr;
};

// A collective call. Throws the same ConfigError on all ranks when their options differ, naming
// those that do.
void require_same_options(ProcessGroup& group, const DdpOptions& options);

// Throws ConfigError naming the first of `ignored` that is not among `names`.
void require_known_names(const std::vector<std::string>& ignored,
                         const std::vector<std::string>& names);

}  // namespace ddproof
