// The fact that augmentation, dropout and shuffling inside a worker rely on:
//
//   distinct streams   no two of the workers of all ranks, in an epoch and the next one, draw the
//                      same numbers
//
// Broken by a worker seed without the rank (all ranks augment alike), by the state of a generator
// that forked workers copy, and by a seed that forgets the epoch. Sums such as seed + rank + worker
// break it too: rank 0's worker 1 is then rank 1's worker 0.
//
// The streams under test are a function, so that others can bring their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "properties/property.h"

namespace ddproof {

struct WorkerKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  int rank = 0;
  int worker = 0;
  int world_size = 1;
  int workers = 1;  // of each rank
};

// The first `count` numbers that the worker draws.
using DrawWorkerNumbers =
    std::function<std::vector<std::uint64_t>(const WorkerKey& key, int count)>;

// RandomStream::of_worker.
std::vector<std::uint64_t> draw_reference_numbers(const WorkerKey& key, int count);

struct WorkerStreamsCase {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  int world_size = 1;
  int workers = 1;
};

// What is wrong with `draw` in this case; empty when nothing is.
std::string check_distinct_streams(const WorkerStreamsCase& drawn, const DrawWorkerNumbers& draw);

PropertyResult distinct_streams(const PropertyOptions& options, Runtime& runtime,
                                const DrawWorkerNumbers& draw = draw_reference_numbers);

}  // namespace ddproof
