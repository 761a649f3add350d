// What each rank of a run did, step by step, in virtual time.
//
// Threads: that of the run.
#pragma once

#include <string>
#include <vector>

#include "simulator/time.h"

namespace ddproof::scenario {

struct StoryLine {
  sim::Time begin = 0;
  sim::Time end = sim::kNever;  // kNever: the step never ended
  int depth = 0;                // in repeats, branches and samplers
  std::string step;
  std::string outcome;  // what ended it, where that was no success
};

using RankStory = std::vector<StoryLine>;

// "    10 us  all_reduce sum float32 [4]: done at 12 us", one line a step.
std::string to_string(const StoryLine& line);

}  // namespace ddproof::scenario
