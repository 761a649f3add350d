// How a rank waits for its device or communicator: it asks again and again, through the Runtime,
// until what it waits for has come, the call's deadline has passed, or nobody will end the wait.
//
// A wait inside CUDA or NCCL would have no deadline and could not be ended. The pauses grow from
// nothing to a millisecond, so that short calls end at once and long ones cost no processor.
// Threads: one task.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "backends/api/runtime.h"

namespace ddproof::nccl {

// The wait ended without what it was for; others know why.
struct Interrupted {
  bool timed_out = false;
  std::string detail;  // what was waited for, or what the library said
};

// How long to wait between two questions.
class Pauses {
 public:
  explicit Pauses(Duration longest = std::chrono::milliseconds(1)) : longest_(longest) {}
  Duration next() {
    if (polls_++ < kPollsWithoutPause) return Duration::zero();
    return pause_ = std::clamp<Duration>(2 * pause_, std::chrono::microseconds(20), longest_);
  }

 private:
  static constexpr int kPollsWithoutPause = 16;
  Duration longest_;
  Duration pause_{0};
  int polls_ = 0;
};

class Patience {
 public:
  // `is_hopeless()`: nobody will end the wait any more. `runtime` must outlive this.
  Patience(Runtime& runtime, Duration timeout, std::function<bool()> is_hopeless)
      : runtime_(runtime),
        is_hopeless_(std::move(is_hopeless)),
        timeout_(timeout),
        deadline_(deadline_after(runtime.now(), timeout)) {}

  // Ends a timeout and a second later, for waits for a rank that has a timeout of its own.
  Patience for_as_long_again() const {
    Patience longer = *this;
    longer.deadline_ = deadline_after(deadline_after(deadline_, timeout_), std::chrono::seconds(1));
    return longer;
  }

  // Throws Interrupted when it ends.
  void check(const std::string& what) const {
    if (is_hopeless_()) throw Interrupted{false, what + " was given up: others are gone"};
    if (runtime_.now() >= deadline_) throw Interrupted{true, "Timed out waiting for " + what};
  }

  // Returns when `is_there()`; what it throws comes out. Throws Interrupted.
  template <class IsThere>
  void until(const std::string& what, IsThere&& is_there,
             Duration longest_pause = std::chrono::milliseconds(1)) const {
    Pauses pauses(longest_pause);
    while (!is_there()) {
      check(what);
      runtime_.sleep_for(pauses.next());
    }
  }

 private:
  Runtime& runtime_;
  std::function<bool()> is_hopeless_;
  Duration timeout_;
  TimePoint deadline_;
};

}  // namespace ddproof::nccl
