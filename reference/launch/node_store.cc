#include "reference/launch/node_store.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/api/error.h"
#include "backends/store/host_and_port.h"

namespace ddproof {
namespace {

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  ::getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

struct Route {
  std::string from;  // the address of this machine that leads to
  std::string to;    // the host's
};

// Connecting a datagram socket sends nothing; it makes the kernel choose the route.
std::optional<Route> route_along(const addrinfo& remote) {
  const int fd = ::socket(remote.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_storage local{};
  socklen_t length = sizeof(local);
  auto* address = reinterpret_cast<sockaddr*>(&local);
  const bool found = ::connect(fd, remote.ai_addr, remote.ai_addrlen) == 0 &&
                     ::getsockname(fd, address, &length) == 0;
  ::close(fd);
  if (!found) return std::nullopt;
  return Route{numeric(address, length), numeric(remote.ai_addr, remote.ai_addrlen)};
}

Route route_to(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* results = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &results);
  if (error != 0) {
    throw ResourceError("the rendezvous at " + host_and_port(host, port) + ": no address found (" +
                        ::gai_strerror(error) + "); give a name or address that this node knows");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(results, &::freeaddrinfo);
  for (const addrinfo* entry = results; entry != nullptr; entry = entry->ai_next) {
    if (auto route = route_along(*entry)) return *route;
  }
  throw ResourceError("the rendezvous at " + host_and_port(host, port) +
                      ": this node has no route to it");
}

// Null where somebody else has the port and `must` is false.
std::unique_ptr<TcpStoreServer> listen(Runtime& runtime, const NodeStoreOptions& options,
                                       bool must) {
  try {
    return std::make_unique<TcpStoreServer>(
        runtime, TcpStoreServerOptions{.host = is_loopback(options.host) ? options.host : "",
                                       .port = options.port,
                                       .token = options.token,
                                       .port_holder = options.port_holder});
  } catch (const ResourceError&) {
    if (must) throw;
    return nullptr;
  }
}

}  // namespace

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

NodeStore::NodeStore(Runtime& runtime, const NodeStoreOptions& options)
    : runtime_(runtime),
      where_{.host = options.host, .port = options.port, .token = options.token} {
  const Route route = route_to(options.host, options.port);
  const bool is_here = route.from == route.to || is_loopback(route.to);
  own_address_ = is_here ? options.host : route.from;
  if (options.is_host.value_or(is_here)) {
    server_ = listen(runtime, options, options.is_host.has_value());
  }
}

void NodeStore::connect(Duration timeout, const std::function<bool()>& must_end) {
  const TimePoint deadline = deadline_after(runtime_.now(), timeout);
  where_.connect_timeout = std::chrono::seconds(1);
  while (!must_end()) {
    try {
      store_ = std::make_unique<TcpStore>(runtime_, where_);
      return;
    } catch (const CommError& error) {
      if (error.kind() != CommErrorKind::kTimeout) throw;
      if (runtime_.now() < deadline) continue;
      throw CommError(
          CommErrorKind::kTimeout,
          fmt::format(
              "no node hosts the rendezvous at {} within {} s; start the node that has this "
              "address, with the same endpoint, and see that the port is not blocked",
              host_and_port(where_.host, where_.port),
              std::chrono::duration<double>(timeout).count()));
    }
  }
}

NodeStore::~NodeStore() {
  store_.reset();
  if (server_) server_->wait_for_clients_to_leave(kLeaveTimeout);
}

}  // namespace ddproof
