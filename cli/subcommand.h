// A subcommand of the program: one file cli/NAME.cc with one function, declared at the end of this
// header and listed in main.cc.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "backends/api/runtime.h"

namespace ddproof {

// What the program ends with; a launched program's own status passes through `ddproof run`.
enum ExitStatus : int {
  kExitHolds = 0,        // all is well
  kExitFailed = 1,       // a property failed
  kExitUsage = 2,        // wrong use: ConfigError
  kExitEnvironment = 3,  // the world: ResourceError, DataError, CommError
};

struct CommandContext {
  Runtime& runtime;
  std::vector<std::string> arguments;  // those after the subcommand's name
  std::ostream& out;                   // results
  std::ostream& err;                   // progress and remarks
};

struct Subcommand {
  const char* name;
  const char* summary;  // one line for `ddproof --help`
  // Returns the exit status. Lets the errors of backends/api/error.h through: main.cc prints them.
  int (*run)(CommandContext& context);
  const char* to_save_memory;  // what to do when there is not enough; empty: nothing helps
};

// The subcommands, each in the file of its name.
int backends_command(CommandContext& context);
int bench_command(CommandContext& context);
int diff_command(CommandContext& context);
int run_command(CommandContext& context);
int sampler_command(CommandContext& context);
int scenario_command(CommandContext& context);
int train_command(CommandContext& context);
int verify_command(CommandContext& context);

}  // namespace ddproof
