// What a run owes once its faults are over: progress.
//
// At `faults_stop` no fault strikes any more, and the ranks of the core that hang go on. From then
// on each rank of the core begins an operation, or ends, at least every `within`; else the run ends
// with Verdict::kLiveness, which says who made no progress, since when, and what it waits for; to
// blame are those who hold up the others, whether they are in the core or not. When
// nobody can ever go on the verdict comes at once. What faults did before stays done: a message
// that was dropped is gone, and what a partition holds back comes at its end.
#pragma once

#include <vector>

#include "simulator/time.h"

namespace ddproof::sim {

struct Liveness {
  Time faults_stop = 0;
  Time within = 0;        // more than 0
  std::vector<int> core;  // ascending
};

}  // namespace ddproof::sim
