// One function per operation: runs it with Gloo on a connected context, blocking.
//
// Requires, for all: the call was checked (CallChecker), the group has at least two ranks, the
// context's own timeout is `timeout` (bcube takes it from there; run() sets it). Zero-sized calls
// send nothing.
// Throws what Gloo throws: gloo::Exception and gloo::EnforceNotMet; monitored_barrier also
// FoundOut.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/api/call.h"
#include "backends/api/runtime.h"
#include "backends/gloo/gloo_connection.h"
#include "backends/gloo/gloo_process_group.h"

namespace ddproof::gloo_operations {

struct Operation {
  const std::shared_ptr<gloo::Context>& context;
  Runtime& runtime;
  const Call& call;
  Payload& payload;
  std::uint32_t tag = 0;  // the same on all ranks, of this collective alone
  std::chrono::milliseconds timeout;
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kAuto;
};

// A failure whose cause this rank knows without asking.
struct FoundOut {
  Finding finding;
};

// Memory for a while. Left uninitialised: every byte is written before it is read.
inline std::unique_ptr<std::byte[]> scratch(std::size_t bytes) {
  return std::unique_ptr<std::byte[]>(new std::byte[bytes]);
}

// The one of the call. run.cc
void run(const Operation& operation);

// reductions.cc
// Whether an all-reduce of so many bytes takes Gloo's ring, else its bcube.
bool uses_ring(AllReduceAlgorithm wanted, std::size_t bytes);
void all_reduce(const Operation& operation);
void reduce(const Operation& operation);
void reduce_scatter(const Operation& operation);

// tree.cc
// Whether AllReduceAlgorithm::kAuto takes it: for few bytes and an operation that is exact in any
// order, where the number of ranks has a large odd part, all of which send to all in Gloo's bcube.
bool takes_tree(const Call& call, int ranks);
void all_reduce_by_tree(const Operation& operation);

// moves.cc
void broadcast(const Operation& operation);
void all_gather(const Operation& operation);
void gather(const Operation& operation);
void scatter(const Operation& operation);
void all_to_all(const Operation& operation);

// point_to_point.cc
void send(const Operation& operation);
void recv(const Operation& operation);

// barriers.cc
void barrier(const Operation& operation);
void monitored_barrier(const Operation& operation);

}  // namespace ddproof::gloo_operations
