// SIM_CHECK(condition): an invariant of the simulator. On in every build; a failure is a bug in
// ddproof: it prints file, line and condition and aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SIM_CHECK(condition)                                                                   \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      std::fprintf(stderr, "%s:%d: check failed: %s (a bug in ddproof)\n", __FILE__, __LINE__, \
                   #condition);                                                                \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)
