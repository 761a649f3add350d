#include "backends/gloo/tcp/address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "backends/api/error.h"

namespace ddproof {
namespace {

[[noreturn]] void refuse(const std::string& master, const std::string& why) {
  throw ResourceError("MASTER_ADDR is \"" + master + "\": " + why +
                      "; set it to an address of rank 0's machine, or GLOO_SOCKET_IFNAME to the "
                      "network interface to use");
}

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

// The local address from which `remote` is reached, empty when no route leads there. Connecting a
// datagram socket sends nothing; it makes the kernel choose the route.
std::string route_to(const addrinfo& remote) {
  const int fd = ::socket(remote.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage local{};
  socklen_t length = sizeof(local);
  auto* address = reinterpret_cast<sockaddr*>(&local);
  const bool found = ::connect(fd, remote.ai_addr, remote.ai_addrlen) == 0 &&
                     ::getsockname(fd, address, &length) == 0;
  ::close(fd);
  return found ? numeric(address, length) : "";
}

std::string local_address_towards(const std::string& master) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* results = nullptr;
  // The port does not matter, but connect() refuses port 0 on some systems.
  const int error = ::getaddrinfo(master.c_str(), "9", &hints, &results);
  if (error != 0) refuse(master, std::string("no address found (") + gai_strerror(error) + ")");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(results, &freeaddrinfo);
  for (const addrinfo* entry = results; entry != nullptr; entry = entry->ai_next) {
    std::string local = route_to(*entry);
    if (!local.empty()) return local;
  }
  refuse(master, "this machine has no route to it");
}

}  // namespace

ListenAddress choose_listen_address(const Environment& environment) {
  const std::string interface = environment.get("GLOO_SOCKET_IFNAME").value_or("");
  if (!interface.empty()) return {"", interface};
  const std::string master = environment.get("MASTER_ADDR").value_or("");
  if (master.empty() || master == "localhost" || master.starts_with("127.")) {
    return {"127.0.0.1", ""};
  }
  if (master.starts_with('[') && master.ends_with(']')) {  // "[::1]"
    return {local_address_towards(master.substr(1, master.size() - 2)), ""};
  }
  return {local_address_towards(master), ""};
}

}  // namespace ddproof
