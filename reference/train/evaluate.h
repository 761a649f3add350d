// Loss and accuracy of a model over a whole data set, each sample exactly once at every world size:
// ranks draw without padding (Tail::kKeep), and only the sums travel.
#pragma once

#include <cstdint>

#include "backends/api/process_group.h"
#include "backends/api/runtime.h"
#include "reference/data/dataset.h"
#include "reference/model/module.h"
#include "reference/train/metrics.h"

namespace ddproof {

// With a group, a collective call. Returns the same sums on all ranks; `group` may be null. The
// model is switched to evaluation, and back to training also when this throws.
// Requires: `model` holds the same parameters and buffers on all ranks.
MetricSums evaluate(Module<float>& model, Device<float>& device, const Dataset& dataset,
                    std::int64_t batch_size, ProcessGroup* group, Runtime& runtime);

}  // namespace ddproof
