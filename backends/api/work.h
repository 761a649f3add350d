// The handle of one asynchronous call.
//
// Life of a call: submitted -> running -> done, with or without an error. The buffers of the call
// belong to it until it is done; dropping the handle does not cancel it.
// Threads: any task of the rank that made the call.
#pragma once

#include <exception>
#include <memory>

#include "backends/api/time.h"

namespace ddproof {

class Work {
 public:
  virtual ~Work() = default;
  // True once done, with or without an error. Never waits for the call; under the simulator a loop
  // that polls sees time pass, and ends when its rank dies.
  virtual bool is_completed() = 0;
  // Returns when done. Throws the call's own error (CommError), or CommError{kTimeout} when
  // `timeout` passes first; the call then goes on and may be waited for again.
  virtual void wait(Duration timeout = kForever) = 0;
  // The call's error; null while running and after success.
  virtual std::exception_ptr error() = 0;
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace ddproof
