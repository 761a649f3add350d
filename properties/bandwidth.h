// How fast collectives are, measured and told as nccl-tests does, so that numbers can be compared
// with those that people know: time of one call, algorithm bandwidth (bytes / time), and bus
// bandwidth, which makes operations and world sizes comparable.
//
// Source of the factors: nccl-tests, doc/PERFORMANCE.md. Times are the slowest rank's, on the
// Runtime's clock: virtual where the backend's is.
#pragma once

#include <cstdint>

#include "backends/api/backend.h"
#include "reference/compute/device.h"

namespace ddproof {

struct BandwidthOptions {
  Op op = Op::kAllReduce;  // kSend: a ring, each rank sends to the next one and receives
  std::int64_t bytes = 0;  // the larger one of what a rank gives and gets, of float32
  int warm_up = 5;         // calls before the clock starts
  int calls = 20;          // that are timed
};

struct BandwidthRow {
  std::int64_t bytes = 0;          // rounded down to what the ranks can share evenly
  std::int64_t count = 0;          // of elements, as nccl-tests says it: `bytes` of float32
  double seconds = 0;              // of one call
  double algorithm_bandwidth = 0;  // bytes a second; 0 without bytes
  double bus_bandwidth = 0;
  std::int64_t wrong = 0;  // elements of all ranks that are not what they must be
};

// bus bandwidth / algorithm bandwidth.
double bus_factor(Op op, int world_size);

// A collective call; the same row on every rank. `device` holds the buffers. Throws what the
// group's calls throw.
BandwidthRow measure_bandwidth(RankContext& rank, Device<float>& device,
                               const BandwidthOptions& options);

}  // namespace ddproof
