// Starts one child process the way OsProcesses promises. Internal to backends/local.
#pragma once

#include <csignal>

#include "backends/api/processes.h"

namespace ddproof {

struct Spawned {
  pid_t pid = -1;
  int output = -1;  // read ends of the child's stdout and stderr, not blocking, close-on-exec
  int error = -1;
};

// What the child's signals are set to before its program starts.
struct SpawnSignals {
  sigset_t mask;
  bool ignore_pipe = false;
};

// Returns when the child's program has been started. Throws ConfigError when it cannot be,
// ResourceError when the system gives no more processes or descriptors.
// Requires: the calling thread lives on; the child is killed when it ends.
Spawned spawn_process(const ProcessSpec& spec, const SpawnSignals& signals);

}  // namespace ddproof
