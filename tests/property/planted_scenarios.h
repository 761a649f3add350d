// Correct scenarios of 4 to 16 ranks, drawn from a seed, and the same with one bug planted in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddproof::test {

// "a rank skips a call", "swapped buckets", "a dropped message", ...
const std::vector<std::string>& planted_kinds();

// A scenario file that passes.
std::string correct_scenario(std::uint64_t seed);

// A scenario file that expects to pass and has a bug of the kind. That the bug shows is for the
// caller to see: a message that is dropped may have been one that nobody needs.
std::string planted_scenario(std::size_t kind, std::uint64_t seed);

}  // namespace ddproof::test
