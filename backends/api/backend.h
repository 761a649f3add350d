// A backend: one way to make ranks talk. The registry (backends/registry) lists them by name;
// tests, properties and the program ask the registry and never name a backend's type.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/capabilities.h"
#include "backends/api/placement.h"
#include "backends/api/process_group.h"
#include "backends/api/runtime.h"
#include "backends/api/store.h"

namespace ddproof {

// A world whose ranks all live in this process.
struct WorldOptions {
  int world_size = 1;
  Placement placement = {};                     // empty: all on one node
  std::uint64_t seed = 0;                       // schedule, delays and the ranks' random streams
  Duration timeout = std::chrono::minutes(30);  // default of the group's calls
  bool checked = true;  // compare every rank's calls before data moves (backends/checked)
  // Where time is virtual: what Runtime::files() gives to every rank, borrowed; null: an empty file
  // system in memory, which all ranks share. Elsewhere ranks see the operating system's.
  FileSystem* files = nullptr;
};

// What one rank's code gets.
struct RankContext {
  ProcessGroup& group;
  Runtime& runtime;
};

// What a run looked like. Zero where the backend does not measure it.
struct WorldReport {
  std::uint64_t digest = 0;  // of the event sequence; equal digests mean equal runs
  Duration virtual_time{0};
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t switches = 0;
};

// This process as one rank of a world of processes.
struct Membership {
  int rank = 0;
  int world_size = 1;
  Duration timeout = std::chrono::minutes(30);
  bool checked = true;
  // The rank whose process hosts the store, so that its loss can be named; empty: none does.
  std::optional<int> store_host = std::nullopt;
};

// Rethrows what went wrong first: the exception, of whatever type, of the lowest rank that threw
// something else than CommError, since a CommError mostly follows from another rank's failure; else
// the lowest rank's. `by_rank` has one entry per rank, null where nothing was thrown; returns when
// all are null.
void rethrow_root_cause(const std::vector<std::exception_ptr>& by_rank);

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  // Runs `body` once per rank and returns when all ranks have returned.
  // Throws ConfigError when the backend cannot make such a world (single: only one rank).
  // If ranks threw, rethrows as rethrow_root_cause() does.
  virtual WorldReport run_world(const WorldOptions& options,
                                const std::function<void(RankContext&)>& body) = 0;

  // Joins the world that other processes join with the same store. Returns when all are connected.
  // `runtime` and `store` must outlive the group. Throws CommError{kUnsupported} when the backend
  // lives in one process only (asked before by joins_processes()).
  virtual bool joins_processes() const = 0;
  virtual std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                             Store& store) = 0;
};

}  // namespace ddproof
