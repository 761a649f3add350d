// Durations and points in time, in integer nanoseconds. A TimePoint counts from an origin that the
// Runtime chooses; only differences mean anything.
#pragma once

#include <chrono>

namespace ddproof {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::nanoseconds;

inline constexpr Duration kForever = Duration::max();

// now + timeout without overflow; kForever stays kForever.
constexpr TimePoint deadline_after(TimePoint now, Duration timeout) {
  return timeout > kForever - now ? kForever : now + timeout;
}

// What is left until `deadline`; at least a nanosecond, since zero may mean another time.
constexpr Duration time_left(TimePoint now, TimePoint deadline) {
  if (deadline == kForever) return kForever;
  return deadline > now ? deadline - now : Duration(1);
}

}  // namespace ddproof
