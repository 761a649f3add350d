// The nearest of some names: what a message proposes for a mistyped flag or subcommand.
#pragma once

#include <string>
#include <vector>

namespace ddproof {

// `; did you mean "NAME"?`, or empty when no candidate is near: more than a third of the letters
// differ. Counted as differences: insertions, deletions, substitutions, swapped neighbours (Damerau
// 1964, each letter touched once).
std::string did_you_mean(const std::string& typed, const std::vector<std::string>& candidates);

}  // namespace ddproof
