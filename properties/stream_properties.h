// Facts of a sharded stream, over every worker of every rank together (PITFALLS P15):
//
//   one order      taking a rank's workers in turn gives what DistributedSampler deals to the rank
//                  without shuffle, for the same tail: so however many workers there are
//   told length    where the stream's length is known, each shard tells its own, and keeps to it
//   union          keep: every sample comes out once; pad: every sample, and as many on each rank;
//                  drop: none twice, as many on each rank, and fewer than R are left out
//
// Broken by a stream that every rank or every worker reads whole, by a shard by worker alone, and
// by a tail that is cut although it should be kept. The shards under test are a function, so that
// others can bring their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "properties/property.h"
#include "reference/data/sample_stream.h"

namespace ddproof {

struct StreamCase {
  std::int64_t length = 0;
  bool is_length_known = false;
  ShardOptions shard;  // rank and worker are not used
};

// The sample numbers of a stream 0, 1, ..., length-1 that one worker of one rank gets.
using DrawStreamShard =
    std::function<std::vector<std::int64_t>(const StreamCase&, int rank, int worker)>;

// ShardedStream itself. Throws std::logic_error when a sample does not belong to its number, or
// when the shard's length is not the one it told.
std::vector<std::int64_t> draw_reference_stream_shard(const StreamCase& drawn, int rank,
                                                      int worker);

// What is wrong with `draw` in this case; empty when nothing is.
std::string check_stream_partition(const StreamCase& drawn, const DrawStreamShard& draw);

PropertyResult stream_partition(const PropertyOptions& options, Runtime& runtime,
                                const DrawStreamShard& draw = draw_reference_stream_shard);

}  // namespace ddproof
