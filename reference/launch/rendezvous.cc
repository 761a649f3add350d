#include "reference/launch/rendezvous.h"

#include <string>

#include "backends/api/error.h"

namespace ddproof {

Rendezvous::Rendezvous(Runtime& runtime, const LaunchEnvironment& environment, Duration timeout)
    : store_host_(environment.launcher_hosts_store ? std::nullopt : std::optional(0)) {
  if (environment.master_port_is_pytorchs) {
    throw ConfigError(
        "port " + std::to_string(environment.master_port) + " of " + environment.master_addr +
        " is taken by torchrun's own store (TORCHELASTIC_USE_AGENT_STORE is \"True\"), "
        "which speaks PyTorch's protocol alone; start the program with `ddproof run`");
  }
  std::uint16_t port = environment.master_port;
  if (environment.rank == 0 && !environment.launcher_hosts_store) {
    // With other nodes, MASTER_ADDR may be a name that leads to a reachable address only for them,
    // so listen everywhere then.
    const bool one_node = environment.local_world_size == environment.world_size;
    server_ = std::make_unique<TcpStoreServer>(
        runtime,
        TcpStoreServerOptions{.host = one_node ? environment.master_addr : "", .port = port});
    port = server_->port();
  }
  store_ = std::make_unique<TcpStore>(
      runtime,
      TcpStoreOptions{.host = environment.master_addr, .port = port, .connect_timeout = timeout});
}

Rendezvous::~Rendezvous() {
  store_.reset();
  if (server_) server_->wait_for_clients_to_leave(kLeaveTimeout);
}

}  // namespace ddproof
