#include "reference/launch/rendezvous.h"

#include <fmt/format.h>

#include <utility>

#include "backends/api/error.h"

namespace ddproof {
namespace {

std::string left_key(int rank, const std::string& claim) {
  return fmt::format("ranks/{}/left/{}", rank, claim.substr(0, claim.find(' ')));
}

}  // namespace

Rendezvous::Rendezvous(Runtime& runtime, const LaunchEnvironment& environment, Duration timeout,
                       std::function<void(const std::string&)> on_delay)
    : runtime_(runtime),
      store_host_(environment.launcher_hosts_store ? std::nullopt : std::optional(0)) {
  std::uint16_t port = environment.master_port;
  if (environment.rank == 0 && !environment.launcher_hosts_store) {
    // With other nodes, MASTER_ADDR may be a name that leads to a reachable address only for them,
    // so listen everywhere then.
    const bool one_node = environment.local_world_size == environment.world_size;
    server_ = std::make_unique<TcpStoreServer>(
        runtime, TcpStoreServerOptions{.host = one_node ? environment.master_addr : "",
                                       .port = port,
                                       .token = environment.store_token});
    port = server_->port();
  }
  store_ =
      std::make_unique<TcpStore>(runtime, TcpStoreOptions{.host = environment.master_addr,
                                                          .port = port,
                                                          .token = environment.store_token,
                                                          .connect_timeout = timeout,
                                                          .on_connect_delay = std::move(on_delay)});
  claim_rank(environment);
}

// The claims of a rank are numbered. Each is "ID LOCAL_RANK", and ends when its process says so or
// dies: the store then executes its last will.
void Rendezvous::claim_rank(const LaunchEnvironment& environment) {
  const int rank = environment.rank;
  const std::string mine =
      fmt::format("{} {}", store_->add("ranks/ids", 1), environment.local_rank);
  left_key_ = left_key(rank, mine);
  store_->set_last_will(left_key_, "its process died");
  for (int number = 1;; ++number) {
    const std::string key = fmt::format("ranks/{}/{}", rank, number);
    const std::string holder = store_->compare_set(key, "", mine);
    if (holder == mine) return;
    try {
      store_->wait({left_key(rank, holder)}, kClaimTimeout);
    } catch (const CommError& error) {
      if (error.kind() != CommErrorKind::kTimeout) throw;
      throw ConfigError(
          fmt::format("RANK is {} in two processes of one job at {}:{}: LOCAL_RANK is {} here and "
                      "{} in the one that came first; give every process a RANK of its own",
                      rank, environment.master_addr, environment.master_port,
                      environment.local_rank, holder.substr(holder.find(' ') + 1)));
    }
  }
}

void Rendezvous::give_rank_back() {
  try {
    store_->answering_by(runtime_.now() + kClaimTimeout)->set(left_key_, "it left");
  } catch (const CommError&) {  // the store is gone, and all claims with it
  }
}

Rendezvous::~Rendezvous() {
  give_rank_back();
  store_.reset();
  if (server_) server_->wait_for_clients_to_leave(kLeaveTimeout);
}

}  // namespace ddproof
