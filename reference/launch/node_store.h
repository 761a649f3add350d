// The store at which the nodes of a job meet: who hosts it, and how a node is reached from others.
//
// The host listens at the endpoint's port: at that address alone where it is a loopback address,
// else everywhere, since an own name may lead to another address here than elsewhere. It leaves
// last. Threads: one task at a time; the store, as TcpStore.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backends/api/runtime.h"
#include "backends/store/tcp_store.h"
#include "backends/store/tcp_store_server.h"

namespace ddproof {

struct NodeStoreOptions {
  std::string host;
  std::uint16_t port = 0;
  // Empty: who has the host's address and finds the port free.
  std::optional<bool> is_host;
  std::string token;                                      // that all nodes must know; empty: none
  std::function<std::string(std::uint16_t)> port_holder;  // as TcpStoreServerOptions
};

class NodeStore {
 public:
  // Listens, if this node hosts the store. Throws ResourceError naming host and port when it must
  // and cannot, or has no route to the host.
  NodeStore(Runtime& runtime, const NodeStoreOptions& options);
  // The host waits for the other nodes to leave, at most kLeaveTimeout.
  ~NodeStore();
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  // Tries until the store answers, `must_end` says so, which is asked every second, or `timeout`
  // passed: CommError{kTimeout}, naming host and port. Throws as TcpStore.
  void connect(Duration timeout, const std::function<bool()>& must_end);

  bool is_host() const { return server_ != nullptr; }
  // Requires: connect() returned, and not because it had to end.
  Store& store() { return *store_; }
  // The address at which other nodes reach this one.
  const std::string& own_address() const { return own_address_; }

  static constexpr Duration kLeaveTimeout = std::chrono::seconds(5);

 private:
  Runtime& runtime_;
  TcpStoreOptions where_;
  std::string own_address_;
  std::unique_ptr<TcpStoreServer> server_;  // null: another node hosts
  std::unique_ptr<TcpStore> store_;
};

// "localhost" and addresses that lead nowhere but to the machine itself.
bool is_loopback(const std::string& host);

}  // namespace ddproof
