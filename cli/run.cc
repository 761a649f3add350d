// ddproof run: starts a program as N ranks on this machine. Flags and variables as torchrun's.
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "backends/api/error.h"
#include "backends/api/suggest.h"
#include "backends/local/os_processes.h"
#include "cli/arguments.h"
#include "cli/parse_number.h"
#include "cli/run_nodes.h"
#include "cli/subcommand.h"
#include "reference/launch/environment.h"
#include "reference/launch/launcher.h"

namespace ddproof {

static_assert(kOutputLostStatus == kExitEnvironment);

namespace {

constexpr int kLocalWorldSizeMax = 4096;

// The flags that are more than a value of LaunchOptions.
struct RunFlags {
  std::string workers = "1";
  bool standalone = false;
  double grace_seconds = 30;
  std::string redirects = "0";
  std::string tee = "0";
  std::string local_ranks;
  bool is_module = false;
  bool no_python = false;
  std::string nodes = "1";
  int node_rank = 0;
  std::string rendezvous = "static";
  std::string endpoint;
  std::string rendezvous_settings;
  double monitor_seconds = 0.1;
  std::string start_method = "spawn";
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
};

void declare_output(Arguments& arguments, RunFlags& flags, LaunchOptions& options) {
  arguments.text("--log-dir", options.log_directory,
                 "a folder for the workers' files: DIR/RUN/attempt_N/LOCAL_RANK/...");
  arguments.text("-r,--redirects", flags.redirects,
                 "streams that go to log files only: 1 output, 2 errors, 3 both, or 0:1,12:3 by "
                 "local rank");
  arguments.text("-t,--tee", flags.tee, "streams that go to log files, too, in the same form");
  arguments.text("--local-ranks-filter", flags.local_ranks,
                 "show the output of these local ranks only, as 0,2");
}

void declare_rendezvous(Arguments& arguments, RunFlags& flags, LaunchOptions& options) {
  arguments.flag("--standalone", flags.standalone,
                 "use any free port, for one job that stands alone");
  arguments.text("--master-addr", options.master_addr,
                 "address for the store: this machine's; with several nodes, that of node rank 0");
  arguments.number("--master-port", options.master_port, 0, 65535,
                   "port of the store, 0: any free, with one node");
  arguments.text("--nnodes", flags.nodes,
                 "nodes: a number, or MIN:MAX with c10d, where nodes may come and go");
  arguments.number("--node-rank", flags.node_rank, 0, kNodesMax - 1,
                   "this node's number, with static");
  arguments.choice("--rdzv-backend", flags.rendezvous, {"static", "c10d"},
                   "how several nodes meet: numbered, or elastic in the order of their host names");
  arguments.text("--rdzv-endpoint", flags.endpoint,
                 "HOST[:PORT] of the store, instead of --master-addr and --master-port; with c10d, "
                 "hosted by the node that has this address");
  arguments.text("--rdzv-id", options.run_id, "the job's name, TORCHELASTIC_RUN_ID");
  arguments.text("--rdzv-conf", flags.rendezvous_settings,
                 "KEY=VALUE,... for several nodes, in seconds: join_timeout 600, last_call_timeout "
                 "30, keep_alive_interval 5; keep_alive_max_attempt 3, is_host");
  arguments.text("--local-addr", options.local_addr,
                 "address at which other nodes reach this one; found out if not given");
}

void declare(Arguments& arguments, RunFlags& flags, LaunchOptions& options) {
  arguments.text("--nproc-per-node", flags.workers,
                 "ranks to start: a number, cpu, gpu, or auto (gpu where there is one)");
  arguments.number("--max-restarts", options.max_restarts, 0, 1'000'000,
                   "how often all ranks may start again after one failed");
  declare_rendezvous(arguments, flags, options);
  declare_output(arguments, flags, options);
  arguments.text("--role", options.role, "ROLE_NAME of the ranks");
  arguments.flag("-m,--module", flags.is_module, "PROGRAM is a Python module");
  arguments.flag("--no-python", flags.no_python, "start PROGRAM itself even when it ends in .py");
  arguments.number("--grace-seconds", flags.grace_seconds, 0, 1e6, "from SIGTERM to SIGKILL");
  arguments.number("--monitor-interval", flags.monitor_seconds, 0, 1e6,
                   "accepted; events are seen at once");
  arguments.choice("--start-method", flags.start_method, {"spawn", "fork", "forkserver"},
                   "accepted; a program is started, no function");
  arguments.text("--signals-to-handle", flags.signals, "accepted as it is by default");
  arguments.rest("PROGRAM", options.command, "program and arguments, as typed");
}

// What torch.cuda.device_count() would be, without the driver.
int gpu_count(Runtime& runtime) {
  const auto visible = runtime.environment().get("CUDA_VISIBLE_DEVICES");
  if (visible && (visible->empty() || visible->starts_with('-'))) return 0;
  if (visible) return 1 + static_cast<int>(std::ranges::count(*visible, ','));
  const auto is_gpu = [](const std::string& name) {
    const std::string start = "nvidia";
    return name.size() > start.size() && name.starts_with(start) &&
           name.find_first_not_of("0123456789", start.size()) == std::string::npos;
  };
  return static_cast<int>(std::ranges::count_if(runtime.files().list("/dev"), is_gpu));
}

int worker_count(const std::string& text, Runtime& runtime) {
  const int gpus = text == "gpu" || text == "auto" ? gpu_count(runtime) : 0;
  if (text == "gpu" && gpus == 0) {
    throw ConfigError(
        "--nproc-per-node gpu: this machine has no GPU; allowed: cpu, auto or a "
        "number");
  }
  if (gpus > 0) return std::min(gpus, kLocalWorldSizeMax);
  if (text == "cpu" || text == "auto") {
    return std::clamp(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1, kLocalWorldSizeMax);
  }
  const auto count = parse_number<int>(text);
  if (count && *count >= 1 && *count <= kLocalWorldSizeMax) return *count;
  throw ConfigError("--nproc-per-node: \"" + text + "\" is not allowed; allowed: auto, cpu, gpu " +
                    "or a whole number from 1 to " + std::to_string(kLocalWorldSizeMax));
}

void check_rendezvous(const Arguments& arguments, const RunFlags& flags,
                      const LaunchOptions& options) {
  if (flags.standalone) {
    for (const char* other : {"--master-port", "--rdzv-endpoint"}) {
      if (!arguments.given(other)) continue;
      throw ConfigError("--standalone chooses a free port, so " + std::string(other) +
                        " is not allowed with it");
    }
  }
  if (!flags.endpoint.empty() &&
      (arguments.given("--master-addr") || arguments.given("--master-port"))) {
    throw ConfigError(
        "--rdzv-endpoint says where the store is, so --master-addr and --master-port "
        "are not allowed with it");
  }
  if (options.run_id.find('/') != std::string::npos) {
    throw ConfigError("--rdzv-id: \"" + options.run_id +
                      "\" is not allowed; allowed: a text without \"/\", since a folder of log "
                      "files has its name");
  }
  if (flags.signals != RunFlags().signals) {
    throw ConfigError("--signals-to-handle: \"" + flags.signals + "\" is not allowed; allowed: " +
                      RunFlags().signals + ", all of which go on to the workers");
  }
}

// HOST, HOST:PORT, [ADDRESS]:PORT; 29400 where none is given, as torchrun.
void take_endpoint(const std::string& endpoint, LaunchOptions& options) {
  const auto colon = endpoint.rfind(':');
  const bool is_bare_ipv6 = endpoint.find(':') != colon && endpoint.find(']') == std::string::npos;
  const bool has_port = colon != std::string::npos && !is_bare_ipv6 && endpoint.back() != ']';
  options.master_addr =
      require_host("--rdzv-endpoint", has_port ? endpoint.substr(0, colon) : endpoint);
  options.master_port = 29400;
  if (!has_port) return;
  if (const auto port = parse_number<int>(endpoint.substr(colon + 1));
      port && *port >= 0 && *port <= 65535) {
    options.master_port = *port;
    return;
  }
  throw ConfigError("--rdzv-endpoint: \"" + endpoint +
                    "\" is not allowed; allowed: HOST:PORT with a port from 0 to 65535");
}

// As torchrun starts Python: without a buffer, so that lines come out when they are printed.
void start_with_python(const RunFlags& flags, Runtime& runtime, std::vector<std::string>& command) {
  if (flags.is_module && flags.no_python) {
    throw ConfigError("--module is Python's, so --no-python is not allowed with it");
  }
  const bool is_script = command.front().ends_with(".py") && !flags.no_python;
  if (!flags.is_module && !is_script) return;
  std::vector<std::string> python = {runtime.environment().get("PYTHON_EXEC").value_or("python3"),
                                     "-u"};
  if (flags.is_module) python.emplace_back("-m");
  command.insert(command.begin(), python.begin(), python.end());
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

int run_command(CommandContext& context) {
  LaunchOptions options;
  RunFlags flags;
  Arguments arguments(
      "ddproof run",
      "Starts PROGRAM as ranks of one world: all of them, or one node's. Lines that ranks print "
      "come out whole, with the rank before them; lines longer than 64 KiB are cut "
      "into pieces. Flags are torchrun's; PET_NAME in the environment is --name.");
  declare(arguments, flags, options);
  arguments.variables("PET_", context.runtime.environment());
  if (!arguments.parse(context.arguments, context.out)) return kExitHolds;
  if (options.command.empty()) {
    throw ConfigError("no program given; usage: ddproof run [FLAGS] -- PROGRAM [ARGUMENTS]");
  }
  check_rendezvous(arguments, flags, options);
  if (!flags.endpoint.empty()) take_endpoint(flags.endpoint, options);
  take_nodes({.nodes = flags.nodes,
              .node_rank = flags.node_rank,
              .node_rank_is_given = arguments.given("--node-rank"),
              .is_static = flags.rendezvous == "static",
              .is_standalone = flags.standalone,
              .has_endpoint = !flags.endpoint.empty(),
              .settings = flags.rendezvous_settings},
             options);
  if (flags.standalone) options.master_port = 0;
  options.local_world_size = worker_count(flags.workers, context.runtime);
  options.redirects = {"--redirects", flags.redirects, options.local_world_size};
  options.tee = {"--tee", flags.tee, options.local_world_size};
  if (!flags.local_ranks.empty()) {
    options.local_ranks =
        parse_local_ranks("--local-ranks-filter", flags.local_ranks, options.local_world_size);
  }
  start_with_python(flags, context.runtime, options.command);
  options.grace = std::chrono::nanoseconds(std::llround(flags.grace_seconds * 1e9));
  options.on_terminal = isatty(STDERR_FILENO) == 1;
  options.host = host_name();
  OsProcesses processes(context.runtime);
  return launch(options, context.runtime, processes);
}

}  // namespace ddproof
