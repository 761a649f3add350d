// The element-wise arithmetic of the reductions, with the values that ReduceOp promises (call.h):
// integers wrap, min and max do not depend on the order of ranks, 16-bit floats round each sum.
// Pure functions.
#pragma once

#include <cstddef>
#include <functional>

#include "backends/api/buffer.h"
#include "backends/api/call.h"

namespace ddproof {

// out[i] = a[i] (op) b[i] for i < count; out may be a or b. What Gloo calls. kAverage sums.
using ReduceFunction =
    std::function<void(void* out, const void* a, const void* b, std::size_t count)>;

// Requires: custom elements come with kSum only. The element type must outlive the function.
ReduceFunction reduce_function(ElementType type, ReduceOp op);

// The last step of kAverage: one true division per element; integers round toward zero.
// Requires: not a custom element.
void divide(Buffer data, int divisor);

}  // namespace ddproof
