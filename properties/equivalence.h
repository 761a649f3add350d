// Do N ranks train what one device trains? Runs a training job on the ranks of a world and, beside
// rank 0, on one CPU with the whole batch: each step from the same state, so that differences
// are rounding alone and never pile up.
//
// After each step, element by element:
//   gradients   differ by no more than the bound of reference/oracle/magnitude_device.h
//   momentum    } differ by no more than one SGD step may make of the difference of the
//   weights     } gradients as they are (reference/oracle/rounding_bound.h)
//   ranks       hold the same bits as rank 0: gradients, momentum and weights
// Then the one device takes over rank 0's state, and the next step starts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "properties/world.h"
#include "reference/data/dataset.h"
#include "reference/ddp/distributed_data_parallel.h"
#include "reference/optim/sgd.h"

namespace ddproof {

struct TrainingJob {
  // Must give the same model each time.
  std::function<std::unique_ptr<Module<float>>(Device<float>&)> make_model;
  const Dataset& dataset;
  std::uint64_t seed = 0;       // of the sampler
  std::int64_t batch_size = 1;  // per rank
  // Rank r takes r mod batch_size samples fewer. For Averaging::kSamples.
  bool uneven = false;
  std::int64_t micro_batches = 1;  // at most so many, as equal as they can be
  int steps = 1;                   // at most as many as an epoch has
  SgdOptions sgd;
  DdpOptions ddp;
};

// The largest |difference| / bound in one step; at most 1 when all is well.
struct StepComparison {
  double gradient = 0;
  double momentum = 0;
  double weight = 0;
  std::int64_t elements = 0;     // compared, of each kind
  bool ranks_identical = false;  // bit by bit
  // The first thing that is wrong, with numbers; empty when nothing is.
  std::string wrong;
};

// One entry per step. Throws ConfigError when the epoch has fewer steps; what the world throws.
std::vector<StepComparison> compare_with_one_device(const PropertyWorld& world, int world_size,
                                                    const TrainingJob& job);

}  // namespace ddproof
