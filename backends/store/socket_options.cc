#include "backends/store/socket_options.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace ddproof {

void set_socket_options(Tcp::socket& socket) {
  const int descriptor = socket.native_handle();
  const auto set = [descriptor](int level, int name, int value) {
    ::setsockopt(descriptor, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

}  // namespace ddproof
