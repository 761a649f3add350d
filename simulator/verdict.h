// The text of a deadlock: who waits in which call, at which line, for whom, and what became of
// those who are waited for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/time.h"

namespace ddproof::sim {

// One rank that waits. `ranks` empty: for whom is not known.
struct WaitingRank {
  int rank = 0;
  std::string what;
  std::string site;  // "x.cc:12", or empty
  std::vector<int> ranks;
};

struct DeadlockText {
  std::string text;
  std::vector<int> culprits;  // waited for, but not waiting themselves
};

// `fates[r]` says what became of a rank that does not wait: "has returned", "crashed at 3 us".
// Names at most 8 waiting ranks, first those who wait for a culprit, and counts the rest.
//
// "deadlock at t=3 us: rank 1 waits in barrier #2 at x.cc:12 for rank 3; rank 3 has returned"
DeadlockText describe_deadlock(Time now, std::vector<WaitingRank> waiting,
                               std::span<const std::string_view> fates);

// The last part of a path, with the line: "x.cc:12"; empty without a file.
std::string format_site(std::string_view file, int line);

}  // namespace ddproof::sim
