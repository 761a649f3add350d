// The memory of one call of a scenario, and the call itself.
//
// Threads: one task at a time. Must live until the call's Work is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/api/process_group.h"
#include "properties/scenario/call_memory.h"
#include "properties/scenario/scenario.h"

namespace ddproof::scenario {

// How many elements of memory a layout reaches over, holes included. Throws ConfigError when that
// is no 64-bit number.
std::int64_t reach(const Layout& layout);

// broadcast, reduce, gather, scatter.
bool has_root(Op op);

// Whether elements mean anything under this payload. Requires: the call has data, and so many ranks
// make it.
bool has_values(const CallStep& call, PayloadMode payload, int ranks);

class CallBuffers {
 public:
  // Fills the input, unless the payload has no use for it. `call` must outlive this.
  // Throws ResourceError when the memory is not there.
  CallBuffers(const CallStep& call, int rank, const Scenario& scenario);

  WorkPtr submit(ProcessGroup& group, CallSite site);
  // What the call leaves on this rank, in the order of memory; empty where it leaves nothing.
  ConstBuffer result() const;
  // Of a result that every rank gets alike, as far as the payload gives it; empty: it does not, or
  // ranks get different ones.
  std::optional<std::uint64_t> replica_digest(const Scenario& scenario) const;

 private:
  // A dense view of all memory of the input or output.
  Buffer dense(const CallMemory& memory) const;
  Buffer shaped(const CallMemory& memory) const;

  const CallStep& call_;
  bool is_root_;
  int root_;  // in the group
  int peer_;  // in the group
  CallMemory input_;
  CallMemory output_;  // unused where the call works in place
};

}  // namespace ddproof::scenario
