// The optimizer that the options of a run ask for, and how ranks compare it.
#pragma once

#include <memory>
#include <vector>

#include "reference/ddp/agreement.h"
#include "reference/optim/optimizer.h"
#include "reference/train/train.h"

namespace ddproof {

// With `zero` and a group, sharded over it. Requires: `group`, which may be null, outlives it.
std::unique_ptr<Optimizer<float>> make_optimizer(const TrainOptions& options,
                                                 std::vector<Parameter<float>*> parameters,
                                                 ProcessGroup* group);

// What must be equal on all ranks, of how parameters are updated.
std::vector<Setting> optimizer_settings(const TrainOptions& options);

}  // namespace ddproof
