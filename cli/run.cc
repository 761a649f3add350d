// ddproof run: starts a program as N ranks on this machine. Flags and variables as torchrun's.
#include <unistd.h>

#include <cmath>

#include "backends/api/error.h"
#include "backends/local/os_processes.h"
#include "cli/arguments.h"
#include "cli/subcommand.h"
#include "reference/launch/launcher.h"

namespace ddproof {

static_assert(kOutputLostStatus == kExitEnvironment);

int run_command(CommandContext& context) {
  LaunchOptions options;
  bool standalone = false;
  double grace_seconds = 30;
  Arguments arguments(
      "ddproof run",
      "Starts PROGRAM as the ranks of one world on this machine. Lines that ranks print "
      "come out whole, with the rank before them; lines longer than 64 KiB are cut "
      "into pieces.");
  arguments.number("--nproc-per-node", options.local_world_size, 1, 4096, "ranks to start");
  arguments.flag("--standalone", standalone, "use any free port, for one job that stands alone");
  arguments.text("--master-addr", options.master_addr, "address of this machine for the store");
  arguments.number("--master-port", options.master_port, 0, 65535,
                   "port of the store, 0: any free");
  arguments.number("--grace-seconds", grace_seconds, 0, 1e6, "from SIGTERM to SIGKILL");
  arguments.rest("PROGRAM", options.command, "program and arguments, as typed");
  if (!arguments.parse(context.arguments, context.out)) return kExitHolds;
  if (options.command.empty()) {
    throw ConfigError("no program given; usage: ddproof run [FLAGS] -- PROGRAM [ARGUMENTS]");
  }
  if (standalone && arguments.given("--master-port")) {
    throw ConfigError("--standalone chooses a free port, so --master-port is not allowed with it");
  }
  if (standalone) options.master_port = 0;
  options.grace = std::chrono::nanoseconds(std::llround(grace_seconds * 1e9));
  options.on_terminal = isatty(STDERR_FILENO) == 1;
  OsProcesses processes(context.runtime);
  return launch(options, context.runtime, processes);
}

}  // namespace ddproof
