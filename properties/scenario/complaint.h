// What a run fails with, in words that stay the same when the scenario gets smaller.
//
// Pure. Threads: any.
#pragma once

#include <set>
#include <string>

#include "properties/scenario/run.h"

namespace ddproof::scenario {

// The outcome, and which words its verdict uses: operations, labels, types, "returned", "crashed";
// without ranks, counts, times, and how often.
struct Complaint {
  Outcome outcome = Outcome::kPasses;
  std::string wrong;  // what kind of expectation it does not meet
  std::set<std::string> words;
  bool is_abridged = false;  // "... 3 more": not all words are there
};

Complaint complaint_of(const Run& run);

// Whether a run complains of the same kind of failure as an original one.
bool is_same(const Complaint& original, const Complaint& complaint);

}  // namespace ddproof::scenario
