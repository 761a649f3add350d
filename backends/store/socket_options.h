// What both ends of a store connection set on their socket.
#pragma once

#include "backends/store/asio.h"

namespace ddproof {

// No delay for small messages; and notice within half a minute that the other machine is gone.
// A socket that just broke is left as it is: the next read or write says so.
void set_socket_options(Tcp::socket& socket);

}  // namespace ddproof
