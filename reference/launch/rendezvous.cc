#include "reference/launch/rendezvous.h"

#include <string>

#include "backends/api/error.h"

namespace ddproof {

Rendezvous::Rendezvous(Runtime& runtime, const LaunchEnvironment& environment, Duration timeout)
    : world_size_(environment.world_size) {
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
  try {
    leave();
  } catch (const CommError&) {
    // The store, or a rank, is gone already: there is nobody left to wait for.
  }
}

void Rendezvous::leave() {
  if (store_->add("rendezvous/left", 1) == world_size_) store_->set("rendezvous/all_left", "1");
  if (server_) store_->get("rendezvous/all_left", kLeaveTimeout);
}

}  // namespace ddproof
