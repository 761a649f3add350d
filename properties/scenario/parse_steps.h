// Reads the steps of a program: the part of parse.h that knows every step.
//
// Threads: any.
#pragma once

#include "properties/scenario/json_node.h"
#include "properties/scenario/scenario.h"

namespace ddproof::scenario {

inline constexpr std::int64_t kTimesMax = 1'000'000;  // turns of a loop

// What a program's steps are read for.
struct StepContext {
  const Scenario& scenario;  // its world, placement and groups
  int world_size = 1;
  int local_ranks = 1;  // of the node that has the most
  PayloadMode payload = PayloadMode::kReal;
  bool in_sampler = false;
  bool in_loop = false;
  std::vector<int> takers = {};  // the ranks that may take the steps, where there are groups
};

// Throws ConfigError as parse_scenario().
Steps parse_steps(const JsonNode& node, const StepContext& context);

// Within 0 to `end` - 1; `noun` is what messages call a number. Throws ConfigError as above.
RankSet parse_set(const JsonNode& node, std::int64_t end, std::string_view noun);

// How many steps a rank takes at most, repeats unrolled and samples counted; stays at the largest
// number.
std::int64_t count_steps(const Steps& steps, int world_size);

}  // namespace ddproof::scenario
