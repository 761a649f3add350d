// What lies under a GlooProcessGroup: one connected gloo::Context, and the four things that Gloo
// itself cannot do. Implemented over TCP (backends/gloo/tcp) and over the simulator (backends/sim).
//
// Ranks are those of this connection's group. All methods are called by one rank's tasks; close()
// may come from any of them while another waits inside Gloo. The context's unbound buffers must
// honour abortWaitRecv() and abortWaitSend(): monitored_barrier ends its waits with them.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/call.h"
#include "backends/api/time.h"
#include "backends/gloo/payload.h"
#include "backends/membership/finding.h"

namespace gloo {
class Context;
}

namespace ddproof {

namespace gloo_operations {
struct Operation;
}

// Gloo takes whole milliseconds and knows no "for ever": a call without a timeout passes this. A
// transport of ours may treat any wait of at least this long as one that never ends by itself.
inline constexpr std::chrono::milliseconds kGlooForever = std::chrono::hours(24 * 3650);

class GlooConnection {
 public:
  virtual ~GlooConnection() = default;

  // Never null, the same for life.
  virtual const std::shared_ptr<gloo::Context>& context() = 0;

  // Around each call that runs on the context, one at a time: what becomes of its bytes. The
  // payload is valid until end_call(), which is called however the call ends.
  virtual Payload& begin_call(const Call& call) {
    (void)call;
    return real_payload_;
  }
  // `completed`: it did what it should; else its buffers may be gone already.
  virtual void end_call(const Call& call, bool completed) noexcept { (void)call, (void)completed; }
  // Between the two: true when the connection has done the operation by itself, as Gloo would have.
  // False: run it with Gloo. Throws what Gloo throws.
  virtual bool run_whole(const gloo_operations::Operation& operation) {
    (void)operation;
    return false;
  }

  // Ends every wait of this rank on the context with gloo::IoException, now and later, and makes
  // the peers' waits for this rank end so too. Idempotent, never blocks, never throws.
  virtual void close() = 0;

  // Finds out, after a failure, who is to blame. Called at most once, after close(). Blocks for at
  // most 0.6 s, also when the store does not answer. Never throws.
  virtual Finding explain(const Symptom& symptom) = 0;

  // Tells the ranks that will ask explain() what this rank knows for certain. Called instead of
  // explain(), before or right after close(). Blocks until the store has answered, at most half a
  // second. Never throws.
  virtual void publish(const Finding& finding) = 0;

  // Connects `members`, ranks of this group in the order of their new ranks, as a group of their
  // own; `my_rank` is this rank's place in it. All members call it at the same time with the same
  // arguments but for my_rank; `name` is unique per connection. Throws CommError.
  virtual std::unique_ptr<GlooConnection> connect_subgroup(const std::string& name,
                                                           const std::vector<int>& members,
                                                           int my_rank, Duration timeout) = 0;

 private:
  Payload real_payload_;
};

}  // namespace ddproof
