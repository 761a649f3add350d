// The one door to the outside world: clock, tasks, waiting, randomness, files, environment.
//
// Real processes get the operating system's Runtime (backends/local), simulated ranks the
// simulator's (backends/sim). Code outside the two implementations calls no clock, thread, mutex,
// getenv or open of its own; that is what lets it run unchanged and deterministically in both.
//
// Threads: a Runtime belongs to one rank. All its methods may be called from any task of that rank.
// In the simulator all tasks of all ranks share one thread and switch only inside wait(),
// sleep_for() and Task::join().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/call_site.h"
#include "backends/api/files.h"
#include "backends/api/time.h"

namespace ddproof {

// Why a task waits: what a deadlock verdict prints. `ranks` are the ranks that could end the wait,
// in the caller's numbering, empty when unknown.
struct WaitReason {
  std::string_view what;
  CallSite site;
  std::vector<int> ranks;
  bool idle = false;      // a service waiting for work: no part of a deadlock
  bool is_local = false;  // only other tasks of this rank end it
};

// A call that ranks make together.
struct MeetingCall {
  int ranks = 0;  // how many; 0: it is no such call
  std::string_view words = {};
};

// A mutex with a condition: guards state that tasks of one rank share, and lets them wait for it.
class Monitor {
 public:
  virtual ~Monitor() = default;
  // Never throws, so that destructors may lock; neither does the locking at the end of wait().
  virtual void lock() = 0;
  virtual void unlock() = 0;
  // Requires: the caller holds the lock. Releases it while waiting and holds it again on return.
  // Returns false when `deadline` passed, true otherwise. Wake-ups may be spurious: loop.
  virtual bool wait(TimePoint deadline, const WaitReason& reason) = 0;
  virtual void notify_all() = 0;
};

// A running task. Join it before destroying it; destroying a task that was not joined aborts.
class Task {
 public:
  virtual ~Task() = default;
  // Returns when the task's body has returned. Rethrows what the body threw, whatever its type.
  virtual void join() = 0;
};

// Environment variables, copied when the Runtime was made: later changes are not seen.
class Environment {
 public:
  virtual ~Environment() = default;
  // Empty when unset; a variable set to "" is an empty string.
  virtual std::optional<std::string> get(std::string_view name) const = 0;
  // All variables as NAME=VALUE, sorted.
  virtual std::vector<std::string> all() const = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Monotonic.
  virtual TimePoint now() const = 0;
  // Nanoseconds since 1970-01-01 UTC; may jump.
  virtual Duration wall_clock() const = 0;
  virtual void sleep_for(Duration duration) = 0;
  // Declares work done: advances virtual time in the simulator, does nothing elsewhere.
  virtual void charge(Duration compute_cost) = 0;

  // Starts `body` as a task of this rank. `name` appears in traces.
  virtual std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) = 0;
  virtual std::unique_ptr<Monitor> make_monitor() = 0;

  // Says which operation the calling task is in from now on: what traces and verdicts print when
  // it then waits inside a library. `meeting`: how many ranks meet in it, and the words that all of
  // them give it. The texts must stay valid until the task's next call.
  virtual void begin_operation(std::string_view what, const CallSite& site,
                               const MeetingCall& meeting) {
    (void)what, (void)site, (void)meeting;
  }

  // Says that something happened that tests want to happen: a name, declared beside the code that
  // says it. Simulated runs count it; elsewhere nothing is done.
  virtual void hit(std::string_view probe) { (void)probe; }

  // The next 64 random bits of this rank's stream. Seeded; the seed is the creator's.
  virtual std::uint64_t random_u64() = 0;

  virtual FileSystem& files() = 0;
  virtual const Environment& environment() const = 0;
};

// Locks a Monitor for a scope.
class MonitorLock {
 public:
  explicit MonitorLock(Monitor& monitor) : monitor_(monitor) { monitor_.lock(); }
  ~MonitorLock() { monitor_.unlock(); }
  MonitorLock(const MonitorLock&) = delete;
  MonitorLock& operator=(const MonitorLock&) = delete;

 private:
  Monitor& monitor_;
};

}  // namespace ddproof
