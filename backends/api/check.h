// DDPROOF_CHECK(condition): an invariant of ddproof itself. On in every build. A failure is our
// bug, never the user's: it prints file, line and condition and aborts.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace ddproof::internal {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s (a bug in ddproof)\n", file, line, condition);
  std::abort();
}

}  // namespace ddproof::internal

#define DDPROOF_CHECK(condition) \
  ((condition) ? void() : ::ddproof::internal::check_failed(#condition, __FILE__, __LINE__))
