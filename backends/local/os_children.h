// The child processes that this process has now, from /proc. Internal to backends/local.
#pragma once

#include <sys/types.h>

#include <vector>

namespace ddproof {

// Those that ended and were not reaped are among them. Empty when /proc cannot be read.
std::vector<pid_t> children_of_this_process();

}  // namespace ddproof
