// The backends that a contract test program runs on: those of the registry (registry_backends.cc),
// or another one that the program links in its place.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/api/backend.h"

namespace ddproof::contract {

std::vector<std::string> tested_backends();
// Checked where the options ask for it.
std::unique_ptr<Backend> make_tested_backend(const std::string& name);

}  // namespace ddproof::contract
