// What becomes of a call's bytes while Gloo's algorithms run: the arithmetic between messages. This
// one is the real one; the simulator has others, which compute with less than the bytes.
// Threads: those of the call.
#pragma once

#include <cstddef>
#include <cstring>

#include "backends/api/reduce_functions.h"

namespace ddproof {

class Payload {
 public:
  virtual ~Payload() = default;

  // As ddproof::reduce_function(): what Gloo calls.
  virtual ReduceFunction reduce(ElementType type, ReduceOp op) { return reduce_function(type, op); }
  // The last step of kAverage.
  virtual void divide(Buffer data, int divisor) { ddproof::divide(data, divisor); }
  virtual void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
};

}  // namespace ddproof
