// Runs a subcommand of the program in this process.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backends/local/os_runtime.h"
#include "cli/subcommand.h"

namespace ddproof {

struct CommandResult {
  int status = -1;
  std::string out;
  std::string err;
};

inline CommandResult run_command(int (*command)(CommandContext&),
                                 std::vector<std::string> arguments) {
  OsRuntime runtime;
  std::ostringstream out;
  std::ostringstream err;
  CommandContext context{runtime, std::move(arguments), out, err};
  const int status = command(context);
  return {status, out.str(), err.str()};
}

}  // namespace ddproof
