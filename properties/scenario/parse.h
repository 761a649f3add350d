// Reads a scenario from the text of a JSON file.
//
// Stateless. Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "properties/scenario/scenario.h"

namespace ddproof::scenario {

// A rank costs three fibers, each with two of the mappings of which a process has 65,530.
inline constexpr int kWorldSizeMax = 10'000;
inline constexpr int kWholeWorldSizeMax = 7'500;       // with fidelity "whole": four fibers a rank
inline constexpr std::int64_t kStepsMax = 10'000'000;  // over all ranks, repeats unrolled
inline constexpr std::int64_t kBufferBytesMax = std::int64_t{1} << 30;  // one call, all ranks
// The same for calls in place, send and recv where the payload is "sizes": no memory is touched.
inline constexpr std::int64_t kVirtualBytesMax = std::int64_t{1} << 45;

// `file` is what messages call it. Throws ConfigError, one line: "FILE: PATH is FOUND; allowed:
// ...".
Scenario parse_scenario(std::string_view text, const std::string& file);

}  // namespace ddproof::scenario
