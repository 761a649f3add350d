// Starts the ranks of one node, looks after them, and ends as they end: what `ddproof run` does.
// With several nodes it is one of their agents (agent.h), and ends as the job does.
//
// Rules (SEMANTICS 10, D8; PITFALLS P33, P39-P42):
//   Ranks    every worker gets the variables that torchrun sets; the launcher hosts the store, with
//            several nodes that of group rank 0, at a free port
//   Output   of the workers comes out in whole lines, "[rank 3] " before each. When it cannot be
//            written, that is said on the standard error, the job goes on, and its status is
//            kOutputLostStatus unless it is another one than 0. A reader that leaves is no error.
//   Failure  the first worker that fails ends all. Its status is the launcher's: the exit code, or
//            128 + the signal. Of several found at once, one that was killed counts as the first,
//            since others fail when they lose it. The others get kReportTime to find out and to
//            say whom they lost, then SIGTERM, grace, SIGKILL. The last line names the first
//            failure with host, time, and what the worker wrote to its error file (error_file.h).
//   Restart  while there are restarts left, all workers start again once the last one has ended,
//            with a new store, so that no key of the attempt before is seen. So they do when nodes
//            come or go, which uses no restart up (rounds.h).
//   Signals  SIGTERM, SIGINT, SIGHUP, SIGQUIT go on to the workers, and the launcher's status is
//            128 + the signal, unless a worker failed before; another one ends the grace. The same
//            one within kSameSignal is the same request, reaching us twice (directly, and through
//            our process group), and counts once. What was ignored at the start stays ignored.
//            SIGUSR1 and SIGUSR2 go on to the workers, and the job goes on.
//   Nothing is left behind: none of its workers, nor what they started, in whatever session; no
//            descriptor, no file. What is in a worker's process group is killed when the worker
//            ends, what left it when all have ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/processes.h"
#include "backends/api/runtime.h"
#include "reference/launch/rounds.h"
#include "reference/launch/stream_map.h"

namespace ddproof {

// How long workers may go on after one of them failed, before they are asked to stop.
inline constexpr Duration kReportTime = std::chrono::milliseconds(500);

// How soon the same signal again still says nothing new.
inline constexpr Duration kSameSignal = std::chrono::seconds(1);

// The status when all workers returned 0, but what they printed could not all be written.
inline constexpr int kOutputLostStatus = 3;

// Set to "lines" for workers whose output a person watches, through the launcher.
inline constexpr const char* kProgressVariable = "DDPROOF_PROGRESS";

struct LaunchOptions {
  int local_world_size = 1;
  std::string master_addr = "127.0.0.1";  // where the store listens; with several nodes: the
  int master_port = 29500;                // store at which they meet. 0: any free port
  // Several nodes, if nodes_max is more than 1. Of no use: run_id, host, local_world_size and
  // max_restarts, which are below.
  RoundsOptions nodes = {};
  std::optional<bool> hosts_rendezvous = {};  // with several nodes; empty: who can
  bool ignores_node_rank = false;  // --node-rank was given where it means nothing; that is said
  std::string local_addr = {};     // at which other nodes reach this one; empty: found out
  Duration grace = std::chrono::seconds(30);
  bool on_terminal = false;      // workers are asked for lines of progress (kProgressVariable)
  int max_restarts = 0;          // after failures; nothing else uses them up
  std::string run_id;            // TORCHELASTIC_RUN_ID; empty: one of its own
  std::string role = "default";  // ROLE_NAME
  std::string host;              // this machine's name, for the report
  // Files of workers are LOG_DIRECTORY/RUN/attempt_N/LOCAL_RANK/{stdout,stderr}.log and error.json.
  // Empty: without redirects and tee only error files, which do not stay; else a new folder in
  // TMPDIR or /tmp.
  std::string log_directory;
  StreamMap redirects;               // these go to files instead of our output
  StreamMap tee;                     // these go to files, too
  std::vector<int> local_ranks;      // whose output is shown; empty: all
  std::vector<std::string> command;  // the program and its arguments
};

// Returns the status to exit with: 0 when all workers returned 0 and all output was written.
// Throws, and leaves nothing running, ConfigError when the program cannot be started or the other
// nodes refuse this one, ResourceError when the port is in use or the machine gives no more
// processes, CommError when too few nodes came or their store is gone, and DataError when the log
// files cannot be made.
int launch(const LaunchOptions& options, Runtime& runtime, Processes& processes);

// One start of all workers.
struct Attempt {
  std::string run_id;
  Round round;
};

// The environment of one worker: `base`, with the variables of the contract (environment.h) and
// those of torchrun set for `local_rank`. OMP_NUM_THREADS is 1 when there are several workers and
// nobody set it.
std::vector<std::string> worker_environment(const std::vector<std::string>& base,
                                            const LaunchOptions& options, const Attempt& attempt,
                                            int local_rank, const std::string& error_file);

}  // namespace ddproof
