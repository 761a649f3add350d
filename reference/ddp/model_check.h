// Do all ranks hold the same model? Asked once, before anything is broadcast.
#pragma once

#include <string>
#include <vector>

#include "backends/api/process_group.h"

namespace ddproof {

// What ranks must agree on, in registration order.
struct ParameterInfo {
  std::string name;
  std::string type;  // "float32"
  std::vector<std::int64_t> shape;
};

// A collective call. Compares count, names, types and shapes (SEMANTICS D7).
// Ensures: returns on all ranks, or throws the same ConfigError on all ranks, naming the first
//          parameter that differs and what the ranks have there.
// Errors:  those of ProcessGroup.
void require_same_model(ProcessGroup& group, const std::vector<ParameterInfo>& parameters);

}  // namespace ddproof
