// Where in the source a call was made; every collective carries one, so that a verdict can point
// at the line. Plain value; safe to use from any thread.
#pragma once

namespace ddproof {

// Like std::source_location, which clang 14 does not offer with this standard library.
struct CallSite {
  const char* file = "";
  int line = 0;
  const char* function = "";
  // false: ranks that make one call on different lines of the file still make the same call.
  bool is_line_compared = true;

  // As a default argument this names the caller's line.
  static constexpr CallSite current(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE(),
                                    const char* function = __builtin_FUNCTION()) {
    return CallSite{file, line, function};
  }
};

}  // namespace ddproof
