// The backends that property tests run on.
#pragma once

#include <string>
#include <vector>

#include "backends/registry/registry.h"

namespace ddproof {

// Those of this build that have worlds of several ranks, the fastest first.
inline std::vector<std::string> world_backends() {
  std::vector<std::string> names;
  for (const char* name : {"sim", "gloo"}) {
    for (const BackendInfo& info : list_backends()) {
      if (info.name == name && info.available) names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace ddproof
