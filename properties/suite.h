// All properties by name: what `ddproof verify` runs on a backend. Not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "properties/world.h"

namespace ddproof {

struct SuiteEntry {
  std::string name;
  std::string what;  // one line
  std::function<PropertyResult(const PropertyWorld&, const PropertyOptions&, Runtime&)> run;
};

// In the order in which they are run: cheap first.
std::vector<SuiteEntry> property_suite();

}  // namespace ddproof
