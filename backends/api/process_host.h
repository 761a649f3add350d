// A world whose ranks are tasks of this process, each with a Runtime and a client of one store:
// what a backend that joins processes does for run_world().
//
// Threads: run_in_process() blocks the caller; `join` and `body` run in one task per rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "backends/api/backend.h"

namespace ddproof {

// What a world needs of the process; the registry passes the real ones.
struct ProcessHost {
  std::function<std::unique_ptr<Runtime>(std::uint64_t seed)> make_runtime;
  // A new, empty store within this process, as a maker of its clients, one per rank's Runtime.
  using Clients = std::function<std::unique_ptr<Store>(Runtime& rank)>;
  std::function<Clients(Runtime& owner)> make_store;
};

using JoinRank = std::function<std::unique_ptr<ProcessGroup>(const Membership& membership,
                                                             Runtime& runtime, Store& store)>;

// Runs `body` once per rank with the group that `join` gives it, and returns when all have
// returned. No rank begins before all tasks have been started: when one cannot be, what spawn()
// threw comes out. Rethrows what ranks threw as rethrow_root_cause(). Requires: options.world_size
// > 0.
void run_in_process(const ProcessHost& host, const WorldOptions& options, const JoinRank& join,
                    const std::function<void(RankContext&)>& body);

}  // namespace ddproof
