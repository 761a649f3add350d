// The key-value store's server over TCP: one task, any number of clients, waits served without
// polling. What clients and server say is in protocol.h.
//
// Invariants: a malformed or oversized message closes that client only; a client of another
// protocol version, one without the token or with a wrong one, or something that is no client of
// ours, is closed before it can ask for anything. Threads:
// construct, use and destroy from any task of the rank that hosts it. Keys are gone with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backends/api/runtime.h"

namespace ddproof {

struct TcpStoreServerOptions {
  std::string host;        // where to listen: a name or address of this machine; empty: everywhere
  std::uint16_t port = 0;  // 0: any free port
  int connections_max = 16384;  // more are closed at once
  std::string token;            // that clients must know; empty: anybody may come
  // Says who listens on a port, as "NAME (pid N)", for the error; may be empty.
  std::function<std::string(std::uint16_t)> port_holder;
};

class TcpStoreServer {
 public:
  // Listens when it returns. `runtime` must outlive the server. Throws ConfigError for a token of
  // more than kTokenBytesMax bytes.
  // Throws ResourceError naming host and port when it cannot listen there.
  TcpStoreServer(Runtime& runtime, const TcpStoreServerOptions& options);
  // Closes all connections; clients get CommError{kPeerLost}.
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::uint16_t port() const { return port_; }

  // Returns when no client is connected, whether it left or died, or when `timeout` passed.
  void wait_for_clients_to_leave(Duration timeout);

 private:
  class Service;
  Runtime& runtime_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Task> task_;
  std::uint16_t port_ = 0;
};

}  // namespace ddproof
