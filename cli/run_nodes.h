// The flags of `ddproof run` that are about several nodes.
#pragma once

#include <string>

#include "reference/launch/launcher.h"

namespace ddproof {

inline constexpr int kNodesMax = 16'384;

struct NodeFlags {
  std::string nodes;  // --nnodes: N, or MIN:MAX
  int node_rank = 0;
  bool node_rank_is_given = false;
  bool is_static = true;
  bool is_standalone = false;
  bool has_endpoint = false;
  std::string settings;  // --rdzv-conf
};

// Puts them into `options`, whose endpoint is there already.
// Throws ConfigError naming the flag, its value and what is allowed.
void take_nodes(const NodeFlags& flags, LaunchOptions& options);

}  // namespace ddproof
