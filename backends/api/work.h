// The handle of one asynchronous call.
//
// Life of a call: submitted -> running -> done, with or without an error. The buffers of the call
// belong to it until it is done; dropping the handle does not cancel it.
//
// A call on device memory (buffer.h) runs in the device's queues, and wait() does not wait for
// that: it returns as soon as the call is there, and has made the buffers' stream wait for the
// call's end. So what enters the stream after wait() sees the result, and may use or free the
// buffers; what the host itself does with them has to wait for the stream. is_completed() is true
// once the device is done. An error that is found after wait() has returned is told by error() and
// by the group's next call; the stream then goes on, and what it sees in the buffers means nothing.
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
  // Returns when done (device memory: see above). Throws the call's own error (CommError), or
  // CommError{kTimeout} when `timeout` passes first; the call then goes on and may be waited for
  // again.
  virtual void wait(Duration timeout = kForever) = 0;
  // The call's error; null while running and after success.
  virtual std::exception_ptr error() = 0;
};

using WorkPtr = std::shared_ptr<Work>;

}  // namespace ddproof
