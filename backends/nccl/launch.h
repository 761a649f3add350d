// Calls that are put into the device's queues together: one, or those of a coalesce(), which are
// one group of NCCL's.
//
// Each waits in the stream for what its caller's stream had to do at the time of the call; when all
// are done on the device, an event is reached. Threads: one task at a time; make_streams_wait()
// any.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/nccl/operations.h"
#include "backends/nccl/patience.h"

namespace ddproof::nccl {

class Launch {
 public:
  // Returns once they are in the queues; when it throws, the callers' streams wait for what is
  // there already. Requires: the calling thread's device is the group's; the calls have been
  // checked, and are all on the device or none of them. `device` must outlive this; the calls need
  // not. Throws as Communicator.
  Launch(DeviceSide& device, std::span<const Call* const> calls, const Patience& patience, int rank,
         int size);

  // Throws when they will not be done.
  void check() const;
  bool is_done() const;
  // Returns when they are done on the device. Throws as Communicator.
  void await() const;
  // Requires: they are done. The results are where the callers want them.
  void deliver() const;
  // What enters the callers' streams from now on sees the results. Throws LibraryError.
  void make_streams_wait() const;

 private:
  void fill_queue();
  void enqueue();
  void give_up() noexcept;

  DeviceSide& device_;
  Patience patience_;
  std::string name_;
  std::vector<Plan> plans_;
  std::vector<cudaStream_t> streams_;  // the callers'
  Event done_;
};

}  // namespace ddproof::nccl
