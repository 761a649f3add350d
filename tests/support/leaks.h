// For tests that abandon fibers: what those own is lost, and the leak checker need not say so.
#pragma once

#include "simulator/sanitizers.h"

#ifdef DDPROOF_SIM_ASAN
#include <sanitizer/lsan_interface.h>
#endif

namespace ddproof {

// Memory that is allocated while one lives may leak.
class LeaksAllowed {
#ifdef DDPROOF_SIM_ASAN
 public:
  LeaksAllowed() { __lsan_disable(); }
  ~LeaksAllowed() { __lsan_enable(); }
  LeaksAllowed(const LeaksAllowed&) = delete;
  LeaksAllowed& operator=(const LeaksAllowed&) = delete;
#else
 public:
  LeaksAllowed() {}
#endif
};

}  // namespace ddproof
