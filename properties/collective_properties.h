// Every collective, and send with recv, gives each rank exactly what it promises,
// and leaves alone what it only reads and what belongs to ranks that get nothing. For every element
// type and operation of the backend, on inputs whose reductions are exact in any order
// (reference/oracle/exact_inputs.h): all comparisons are of bits.
#pragma once

#include "properties/world.h"

namespace ddproof {

struct CollectiveCase {
  int world_size = 1;
  Op op = Op::kBroadcast;  // kSend: a ring, each rank sends to the next one and receives
  DType type = DType::kFloat32;
  ReduceOp reduce_op = ReduceOp::kSum;
  int root = 0;
  std::int64_t count = 0;  // elements of one rank's part
  std::uint64_t seed = 0;
};

// What is wrong with this case; empty when nothing is.
std::string check_collective_exact(const PropertyWorld& world, const CollectiveCase& drawn);

PropertyResult collectives_exact(const PropertyWorld& world, const PropertyOptions& options,
                                 Runtime& runtime);

}  // namespace ddproof
