// Where the ranks of a launched world meet: the store at MASTER_ADDR:MASTER_PORT.
//
// Rank 0 hosts it, unless the launcher does; the host leaves last, so that no rank loses the store
// while it still works. Each rank is claimed by one process at a time, so that two with the same
// RANK do not wait for each other's peers. Threads: one task at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backends/api/runtime.h"
#include "backends/store/tcp_store.h"
#include "backends/store/tcp_store_server.h"
#include "reference/launch/environment.h"

namespace ddproof {

class Rendezvous {
 public:
  // Requires: environment.distributed; `runtime` outlives this.
  // Throws ResourceError when rank 0 cannot listen there, CommError{kTimeout} when nobody answers
  // within `timeout`; both name host and port. Throws ConfigError when another process has this
  // rank and does not leave within kClaimTimeout. `on_delay`, if given, hears from time to time why
  // the store is not reached yet.
  Rendezvous(Runtime& runtime, const LaunchEnvironment& environment, Duration timeout,
             std::function<void(const std::string&)> on_delay = {});
  // The host waits for the other ranks to leave or die, at most kLeaveTimeout.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  Store& store() { return *store_; }
  // The rank that hosts the store; empty: the launcher does.
  std::optional<int> store_host() const { return store_host_; }

  static constexpr Duration kLeaveTimeout = std::chrono::seconds(5);
  // Enough for the store to notice that an earlier process of a restarted rank has ended.
  static constexpr Duration kClaimTimeout = std::chrono::seconds(1);

 private:
  void claim_rank(const LaunchEnvironment& environment);
  void give_rank_back();

  Runtime& runtime_;
  std::optional<int> store_host_;
  std::unique_ptr<TcpStoreServer> server_;  // null unless this rank hosts the store
  std::unique_ptr<TcpStore> store_;
  std::string left_key_;  // says that this process's claim to its rank has ended
};

}  // namespace ddproof
