// The operating system's Runtime, but with a clock that stands still until the test moves it.
#pragma once

#include "backends/local/os_runtime.h"

namespace ddproof {

class SteppedRuntime : public OsRuntime {
 public:
  void advance(Duration duration) { now_ += duration; }
  TimePoint now() const override { return now_; }

 private:
  TimePoint now_ = OsRuntime::now();
};

}  // namespace ddproof
