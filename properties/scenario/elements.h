// The elements of a scenario's buffers: numbers as files write them, in any NCCL dtype.
//
// Stateless. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/api/buffer.h"

namespace ddproof::scenario {

// Integer types: whole numbers within their range (and within 2^53). Floating-point types: all.
bool holds(DType dtype, double value);

// Element i of `data` := values[i % values.size()], rounded to the type.
// Requires: values is not empty; the type holds each; `data` is dense.
void fill(Buffer data, const std::vector<double>& values);

double element_at(ConstBuffer data, std::int64_t index);

// "element 3 is 4, expected 5" for the first that is not values[i % values.size()] rounded to the
// type; nothing when all are. NaN equals NaN.
std::optional<std::string> difference(ConstBuffer data, const std::vector<double>& values);

}  // namespace ddproof::scenario
