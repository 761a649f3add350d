// The backends by name: the only place that knows which ones this build has.
//
// Keeps nothing, but that the library of `nccl`, once asked for, stays loaded. Threads: any.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/backend.h"

namespace ddproof {

struct BackendInfo {
  std::string_view name;
  std::string_view what;  // one line for the table
  bool available = false;
  std::string_view why_not;  // empty when available
};

// All backends that ddproof knows, in a fixed order, also those that this build lacks.
std::vector<BackendInfo> list_backends();

// A backend whose groups compare every rank's calls where the options say `checked`.
// Throws ConfigError for an unknown name (the text lists the known ones) and for one that this
// build lacks (the text says why).
std::unique_ptr<Backend> make_backend(std::string_view name);

}  // namespace ddproof
