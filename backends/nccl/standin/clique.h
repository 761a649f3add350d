// The ranks of one communicator: who has come, whose calls meet, and what becomes of their data.
//
// Invariants: collectives meet by their number on each rank; messages by sender, receiver and
// order. Calls that do not fit break the clique: every member has the asynchronous error
// ncclInvalidUsage, and the text names both calls. A rank that aborts leaves; who waits for it
// waits on, as with NCCL. Threads: those of one simulation.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/nccl/standin/machine.h"
#include "backends/nccl/standin/nccl_call.h"
#include "simulator/wait_list.h"

namespace ddproof::standin {

// One rank's side of a call that is under way on its device.
struct Part {
  ncclComm* member = nullptr;
  NcclCall call;
  std::uint64_t number = 0;  // of a collective
  bool done = false;
  bool given_up = false;  // its member left before it was done
};
using PartPtr = std::shared_ptr<Part>;

class Clique {
 public:
  Clique(Machine& machine, int size)
      : machine_(machine), members_(static_cast<std::size_t>(size), nullptr) {}

  int size() const { return static_cast<int>(members_.size()); }
  // The rank comes to make the communicator; once all have, it is made soon.
  void join(ncclComm& member, int size);
  // Begins a call on the member's device.
  PartPtr post(ncclComm& member, const NcclCall& call);
  // Returns when it is done or the member aborts.
  void await(const Part& part);
  // The member's calls end.
  void leave(ncclComm& member);

 private:
  using Meeting = std::vector<PartPtr>;  // by rank
  using Queue = std::deque<PartPtr>;

  // Why the member cannot be one; empty: it can.
  std::string refuse(const ncclComm& member, int size, bool comes_twice) const;
  void break_with(const std::string& what);
  void tell(ncclComm& member) const;
  void post_collective(const PartPtr& part);
  void post_message(const PartPtr& part);
  static bool is_complete(const Meeting& meeting);
  bool fits(const Meeting& meeting);
  void note_missing(const Part& part, const Meeting& meeting);
  void remove(Queue& queue, const ncclComm& member);

  Machine& machine_;
  std::vector<ncclComm*> members_;
  std::map<std::uint64_t, Meeting> meetings_;   // by number
  std::map<std::pair<int, int>, Queue> sends_;  // by sender and receiver
  std::map<std::pair<int, int>, Queue> recvs_;
  std::string broken_;
  sim::WaitList changed_;
};

// collectives.cc: moves the data. False, after complaints, when a rank's memory is not as it must
// be.
bool carry_out(Machine& machine, const std::vector<PartPtr>& by_rank);
bool carry_out_message(Machine& machine, const Part& send, const Part& recv);

}  // namespace ddproof::standin

// A rank's communicator.
struct ncclComm {
  ddproof::standin::Machine& machine;
  ddproof::standin::Clique* clique = nullptr;
  ddproof::standin::Device* device = nullptr;
  int rank = -1;     // in the clique
  int process = -1;  // the simulation's rank
  ncclResult_t state = ncclSuccess;
  std::string last_error = {};
  bool aborted = false;
  bool gone = false;  // destroyed or aborted: no call may follow
  std::uint64_t collectives = 0;
  int active = 0;  // groups of calls that are launched and not done
  ddproof::sim::WaitList idle = {};

  std::string who() const { return "rank " + std::to_string(rank); }
};
