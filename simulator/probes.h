// The simulator's own probes, which a call's name follows: "crash inside all_reduce".
#pragma once

#include <string_view>

namespace ddproof::sim {

inline constexpr std::string_view kCrashInside = "crash inside ";
inline constexpr std::string_view kHangInside = "hang inside ";

}  // namespace ddproof::sim
