// The memory of one call of a scenario, and the call itself.
//
// Threads: one task at a time. Must live until the call's Work is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/api/process_group.h"
#include "properties/scenario/scenario.h"

namespace ddproof::scenario {

// How many elements of memory a layout reaches over, holes included.
std::int64_t reach(const Layout& layout);

class CallBuffers {
 public:
  // Fills the input. `call` must outlive this.
  CallBuffers(const CallStep& call, int rank, int world_size);

  WorkPtr submit(ProcessGroup& group, CallSite site);
  // What the call leaves on this rank, in the order of memory; empty where it leaves nothing.
  ConstBuffer result() const;

 private:
  // A dense view of all memory of the input or output.
  Buffer dense(std::vector<std::byte>& memory) const;
  Buffer shaped(std::vector<std::byte>& memory) const;

  const CallStep& call_;
  bool is_root_;
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;  // unused where the call works in place
};

}  // namespace ddproof::scenario
