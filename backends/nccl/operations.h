// What each operation is in NCCL's terms: which data go in and out, and the calls between.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "backends/api/call.h"
#include "backends/nccl/staging.h"

namespace ddproof::nccl {

struct Plan {
  Staging staging;
  std::string name;  // of NCCL's function, for messages
  bool sends_messages = false;
  // NCCL's calls: what is accepted comes, once it is done, to the staging's out().
  std::function<ncclResult_t(const Staging& staging, ncclComm_t communicator, cudaStream_t stream)>
      enqueue;
  // What this rank sends itself, which takes no message: from in(from) to out(to).
  struct OwnPart {
    std::size_t to = 0;
    std::size_t from = 0;
    std::size_t bytes = 0;
  };
  std::optional<OwnPart> own_part;
};

// Empty: there are no elements, so nothing is to do. Requires: the call was checked (CallChecker)
// and is no monitored barrier; `call` outlives the plan's use of `enqueue`.
std::optional<Plan> make_plan(const Call& call, int rank, int size);

}  // namespace ddproof::nccl
