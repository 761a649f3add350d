// Calls that the tree may not make, each with what to write instead (STYLE: the Runtime is the one
// door to the outside world; every random choice comes from a seed).
#pragma once

#include "tests/tidy/source_file.h"

namespace ddproof::tidy {

// Banned names in code (comments and strings do not count).
Findings banned_calls(const SourceFile& file);

// #ifdef DDPROOF_WITH_* outside backends/registry.
Findings backend_switches(const SourceFile& file);

}  // namespace ddproof::tidy
