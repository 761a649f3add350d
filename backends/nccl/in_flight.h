// Calls that are in the device's queues and not done there: their Work, and the one task that
// watches all of them until the device has done them, NCCL or the peers fail, or a deadline passes.
//
// Invariants: calls are done in the order in which they came. After one has failed, so have all:
// first their errors are there to see, then the device is made to end what it runs, which lets the
// callers' streams go on, and then wait() throws, when nothing uses the buffers any more.
// Threads: add() and fail_all() from one task at a time; a Work from any, and it may outlive this.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "backends/api/call.h"
#include "backends/api/runtime.h"
#include "backends/api/work.h"
#include "backends/nccl/launch.h"

namespace ddproof::nccl {

class InFlight {
 public:
  struct Failure {
    // Called while an exception says why calls have failed: makes the error of one. Never throws.
    std::function<std::exception_ptr(const Call&)> error_of;
    // Makes the device end all calls. Idempotent; never throws.
    std::function<void()> end;
  };
  // `runtime` must outlive all Work.
  InFlight(Runtime& runtime, Failure failure);
  // Returns once they are done, or have failed.
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  // `call`: what errors name. The Work's wait() returns at once, and what then enters the callers'
  // streams sees the results. `device` is the calls': it becomes the current one of the task that
  // watches.
  WorkPtr add(const Call& call, std::unique_ptr<Launch> launch, int device);
  // A call has failed that is not among them. `cause`: as for Failure::error_of.
  void fail_all(const std::exception_ptr& cause);

 private:
  class Flight;
  struct State;
  void watch(int device);
  // These under the lock. Whether there were any that are done.
  bool finish_done();
  void fail_under_lock(const std::exception_ptr& cause);

  Runtime& runtime_;
  Failure failure_;
  std::shared_ptr<State> state_;
  std::unique_ptr<Task> task_;
};

}  // namespace ddproof::nccl
