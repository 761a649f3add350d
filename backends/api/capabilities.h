// What a backend can do, as data: asked before a call, never found out by a throw.
#pragma once

#include <string_view>
#include <vector>

#include "backends/api/call.h"

namespace ddproof {

struct OpSupport {
  Op op;
  // How: "Gloo's ring", "all-reduce, then keep one part", ... One short line for the table.
  std::string_view how;
};

struct Capabilities {
  std::vector<OpSupport> ops;         // an operation that is not listed is not supported
  std::vector<DType> dtypes;          // without kCustom
  std::vector<ReduceOp> reduce_ops;   // for every dtype in `dtypes`
  bool custom_elements = false;       // caller-defined elements, with kSum
  bool device_buffers = false;        // buffers in device memory, beside those in host memory
  bool same_bits_every_run = false;   // same inputs, same world size: same bytes
  bool same_bits_every_rank = false;  // all ranks of one all_reduce hold the same bytes
  bool virtual_time = false;          // the clock is simulated
  bool tells_deadlocks = false;       // a wait that nobody can end is kDeadlock at once

  bool supports(Op op) const;
  // True when this very call can be executed: operation, element type and reduce operation.
  bool supports(const Call& call) const;
};

// All that there are, for a backend that leaves out none; the dtypes without kCustom.
std::vector<DType> every_dtype();
std::vector<ReduceOp> every_reduce_op();

}  // namespace ddproof
