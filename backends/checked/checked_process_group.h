// A ProcessGroup that compares, before any data moves, what every rank is about to call: the rule
// D2 of SEMANTICS.md. Wraps any other group.
// The calls of a coalesce() are all compared before the first of them is made.
//
// How: the digest of Call::fingerprint() goes through one small
// all_reduce(max) of {digest, ~digest}. Only when that shows a difference are the texts gathered,
// and every rank throws the same CommError{kMismatch}. send and recv compare count, type, tag and
// label with their peer alone, on a tag of their own.
// Cost: one all_reduce of 16 bytes per collective, one message of 256 bytes each way per send/recv.
// Invariants: calls run one after another in a task of this group, and those on device memory are
// then left to the device; after a failure none runs.
// Threads: as ProcessGroup.
#pragma once

#include <memory>
#include <span>

#include "backends/api/forwarding_process_group.h"
#include "backends/api/runtime.h"
#include "backends/api/serial_queue.h"

namespace ddproof {

class CheckedProcessGroup final : public ForwardingProcessGroup {
 public:
  // `inner` and `runtime` must outlive this.
  CheckedProcessGroup(ProcessGroup& inner, Runtime& runtime);
  CheckedProcessGroup(std::unique_ptr<ProcessGroup> inner, Runtime& runtime);
  // Finishes what was submitted; when an exception is on its way, aborts instead.
  ~CheckedProcessGroup() override;

  std::unique_ptr<ProcessGroup> split(int color, int key, CallSite site) override;
  void abort() override;
  WorkPtr submit(Call&& call) override;

 private:
  WorkPtr execute(std::span<const Call* const> calls);
  void compare(const Call& call);

  std::unique_ptr<ProcessGroup> owned_;  // null when borrowed
  Runtime& runtime_;
  int uncaught_at_start_;
  SerialQueue queue_;  // last: its task uses all the others
};

}  // namespace ddproof
