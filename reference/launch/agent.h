// What the process does that starts a node's workers: joins a round, starts them, watches them and
// the other nodes, stops them when the round is over, and begins again, until the job has ended.
//
// Workers and their signals are behind an interface, so that the same agent runs real processes
// (launcher.cc) and simulated ones. What nodes agree on is in rounds.h.
// Threads: run_agent() in one task; it waits for other nodes in a second one.
#pragma once

#include <functional>
#include <string>

#include "backends/api/runtime.h"
#include "reference/launch/rounds.h"

namespace ddproof {

// How the workers of one node ended.
struct WorkersEnd {
  enum class Kind : std::uint8_t {
    kSucceeded,  // all returned 0
    kFailed,     // one did not
    kStopped,    // they were asked to stop, since the round was over
    kTold,       // this node is told to end: a signal
  };
  Kind kind = Kind::kSucceeded;
  JobEnd end;  // of kTold: what to end with
};

class Workers {
 public:
  virtual ~Workers() = default;

  // Makes the place where workers meet if this node becomes group rank 0, in place of the one
  // before. Called from any task, while no workers run.
  virtual Meeting open_meeting() = 0;
  virtual void start(const Round& round) = 0;
  // Returns when all have ended. Calls `on_failure` at once with the first failure, unless they are
  // being stopped. Asks them to stop when `must_stop` says so; it is asked after each wake().
  virtual WorkersEnd run(const std::function<bool()>& must_stop,
                         const std::function<void(const JobEnd&)>& on_failure) = 0;
  // While none runs: returns when `until` says so, which is asked after each wake(), or we are told
  // to end.
  virtual WorkersEnd attend(const std::function<bool()>& until) = 0;
  // From any task.
  virtual void wake() = 0;
};

// Returns how the job ended; for a node that is told to end, how that node did.
// Throws as Rounds::join() and the workers' methods.
JobEnd run_agent(Rounds& rounds, Workers& workers, Runtime& runtime);

}  // namespace ddproof
