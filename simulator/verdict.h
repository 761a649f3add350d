// The text of a deadlock, or of a mismatch that ends as one: who waits in which call, at which
// line, for whom, and what became of those who are to blame.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/liveness.h"
#include "simulator/time.h"
#include "simulator/wait_graph.h"

namespace ddproof::sim {

// `fates[r]` says what became of a rank that does not wait: "has returned", "crashed at 3 us".
// Names at most 8 waits, first those of the cores, and counts the rest.
//
// What comes after the verdict's name:
// " at t=3 us: rank 1 waits in barrier #2 at x.cc:12 for rank 3; behind it rank 0 waits in
// recv at x.cc:9 for any of ranks 1, 2; rank 3 has returned"
std::string describe_deadlock(Time now, std::vector<RankWait> waits, const DeadlockCause& cause,
                              std::span<const std::string_view> fates);

// A rank that should have made progress.
struct LateRank {
  int rank = 0;
  Time since = 0;               // when it last made some
  std::vector<RankWait> waits;  // may be empty
};

// "no progress for 1 s at t=2 s, after the faults stopped at 1 s: rank 1 waits in recv #1 at
// x.cc:12 for rank 0 since 5 us"; or, when nothing can happen any more,
// "no progress is possible at t=1.5 s, after ..."
// The first `roots` of them hold up the others: "...; behind it rank 2 waits in recv #1 ...".
std::string describe_liveness(Time now, const Liveness& liveness, bool nothing_can_happen,
                              const std::vector<LateRank>& late, std::size_t roots);

// The last part of a path, with the line: "x.cc:12"; empty without a file.
std::string format_site(std::string_view file, int line);

}  // namespace ddproof::sim
