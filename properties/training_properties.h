// N ranks equal one device: the same steps from the same state, within the rounding bound, and all
// ranks bit-identical (properties/equivalence.h). Over models, world and batch sizes, optimizers,
// bucket sizes, and gradients from 2^-66 to 2^40 of their size: an error that a fixed tolerance
// would let pass at 1e-5 is found at every scale.
#pragma once

#include "properties/equivalence.h"

namespace ddproof {

struct TrainingCase {
  enum class Model : std::uint8_t {
    kMlp,   // one hidden layer
    kCnn,   // convolution, pooling and a linear layer
    kWide,  // three layers of 1.7 MB: more than one bucket from the second step on
  };
  int world_size = 1;
  std::int64_t batch_size = 1;
  int steps = 1;
  Model model = Model::kMlp;
  int scale_exponent = 0;  // gradients times 2^k
  bool momentum = false;
  bool weight_decay = false;
  bool nesterov = false;       // only with momentum
  bool small_buckets = false;  // a cap of 1 KiB
  bool uneven = false;         // shares of different size, in micro-batches; a mean over samples
  std::uint64_t seed = 0;
};

// The steps of one case.
std::vector<StepComparison> run_training_case(const PropertyWorld& world,
                                              const TrainingCase& drawn);

PropertyResult equals_one_device(const PropertyWorld& world, const PropertyOptions& options,
                                 Runtime& runtime);

}  // namespace ddproof
