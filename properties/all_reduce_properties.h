// all_reduce equals the serial reduction bit by bit, for every element type and operation of the
// backend: on inputs whose reduction is exact in any order (reference/oracle/exact_inputs.h), so
// that there is no tolerance. Counts from 0 to 4097.
#pragma once

#include "properties/world.h"

namespace ddproof {

struct AllReduceCase {
  int world_size = 1;
  DType type = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::int64_t count = 0;
  std::uint64_t seed = 0;
};

// What is wrong with this case; empty when nothing is.
std::string check_all_reduce_exact(const PropertyWorld& world, const AllReduceCase& drawn);

PropertyResult all_reduce_exact(const PropertyWorld& world, const PropertyOptions& options,
                                Runtime& runtime);

}  // namespace ddproof
