// Virtual time: integer nanoseconds since the start of a run. Integers, so that two runs can be
// compared bit for bit and closed forms can be asserted exactly.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace ddproof::sim {

using Time = std::int64_t;

inline constexpr Time kNever = std::numeric_limits<Time>::max();

// a + b for b >= 0, staying at kNever instead of overflowing.
constexpr Time add_time(Time a, Time b) { return b > kNever - a ? kNever : a + b; }

// Exact, in the largest unit that keeps a whole part: "0 ns", "3 us", "10.242 us", "30.0003 s".
std::string format_time(Time time);

}  // namespace ddproof::sim
