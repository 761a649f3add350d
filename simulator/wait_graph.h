// Why ranks can never go on: the wait-for graph, once nothing can happen any more.
//
// A rank can go on when any of its waits ends. A wait for all of its ranks (a collective) is held
// by each of them, a wait for any of them (a receive from any of several) only by all together.
// Ranks that do not wait have ended: they left, died or fell silent, and will do nothing.
// Cost: as many steps as there are arcs, times the ranks that are in circles.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace ddproof::sim {

// One wait of a rank. `ranks` empty: for whom is not known, so anybody might end it.
struct RankWait {
  int rank = 0;
  std::string what;
  std::string site;  // "x.cc:12", or empty
  std::vector<int> ranks;
  bool any = false;  // one of `ranks` is enough; else all of them are needed
  int meeting = 0;   // a call of so many ranks; 0: none
  std::string call;  // in which they meet, in the same words for all of them
  const std::vector<int>* gathers = nullptr;  // as WaitReason's
};

struct DeadlockCause {
  // Ascending. Ranks that have ended and without whom a wait cannot end. When there are none: of
  // the cores, those ranks that are not in the call in which most of its ranks wait already
  // ("called something else"); none when no call has a majority.
  std::vector<int> culprits;
  bool culprits_ended = false;  // which of the two
  // Each ascending; no rank is in two. Where waits need ranks that have ended, the first one has
  // all ranks that cannot go on without these, whatever the others do. Every other one is a minimal
  // set of ranks that cannot go on whatever the others do, once the cores before it are resolved: a
  // circle, or a knot where waits for any rank take part. All other ranks wait behind the cores.
  std::vector<std::vector<int>> cores;
};

// Requires: at least one wait; a rank with one for it is not known whom has no others. `ranks` may
// name a rank twice. `elsewhere` are waits of ranks that can go on: they count as being in a call.
DeadlockCause find_cause(const std::vector<RankWait>& waits,
                         const std::vector<RankWait>& elsewhere = {});

// Who holds up the ranks of `waits`, which make no progress, when other ranks may make some: the
// rest wait behind these. They are
//   - the ranks that a wait needs, which do not wait themselves and are not in `innocent`;
//   - the cores of find_cause(), of those who wait for each other;
//   - who waits for nobody but `innocent`: nothing came from them.
// Requires: each wait says for whom.
std::set<int> find_roots(const std::vector<RankWait>& waits, const std::set<int>& innocent);

}  // namespace ddproof::sim
