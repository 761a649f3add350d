// Facts of a distributed sampler, over every rank of an epoch together (SEMANTICS section 1):
//
//   fair shares      every rank draws ceil(N/R) samples (pad) or floor(N/R) (drop); kept, the
//                    first N mod R ranks draw one more than the others
//   one order        taking the ranks in turn gives the order that one rank alone would draw
//   nothing lost     pad: every sample is drawn, and none twice more often than another;
//                    drop: no sample is drawn twice, and fewer than R are left out;
//                    keep: every sample is drawn once
//   plain order      without shuffle the order is 0, 1, 2, ...
//   exact resume     from any position on, and over any number of ranks, what is left of the order
//                    is dealt as a whole epoch is: so each sample that is left is drawn once, but
//                    for what the tail says of the last round
//
// The sampler under test is a function, so that others can bring their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "properties/property.h"
#include "reference/data/distributed_sampler.h"

namespace ddproof {

// The samples that options.rank draws in `epoch` from `position` on (see DistributedSampler).
using DrawShard = std::function<std::vector<std::int64_t>(
    const SamplerOptions& options, std::int64_t epoch, std::int64_t position)>;

// DistributedSampler itself.
std::vector<std::int64_t> draw_reference_shard(const SamplerOptions& options, std::int64_t epoch,
                                               std::int64_t position);

struct SamplerCase {
  SamplerOptions options;  // rank is not used
  std::int64_t epoch = 0;
  std::int64_t resume_position = 0;  // samples drawn by all ranks together; 0: not resumed
  int resume_replicas = 1;           // ranks that share the rest
};

// Epochs of up to 300 samples on up to 64 ranks; often more ranks than samples. Half of them are
// resumed, at any position on up to 64 ranks.
rc::Gen<SamplerCase> sampler_cases();

// What is wrong with `draw` in this case; empty when nothing is.
std::string check_sampler_partition(const SamplerCase& drawn, const DrawShard& draw);

PropertyResult sampler_partition(const PropertyOptions& options, Runtime& runtime,
                                 const DrawShard& draw = draw_reference_shard);

}  // namespace ddproof
