// Which of this machine's addresses the other ranks shall connect to.
#pragma once

#include <string>

#include "backends/api/runtime.h"

namespace ddproof {

// How Gloo's TCP device shall listen: one of the two is set.
struct ListenAddress {
  std::string host;       // a numeric address: no name has to be resolved to use it
  std::string interface;  // a network interface by name
};

// GLOO_SOCKET_IFNAME decides when set. Else MASTER_ADDR: unset, "localhost" or a loopback address
// means that all ranks run here, so loopback; any other is where the master is, so the address from
// which this machine reaches it. Only a MASTER_ADDR that is a name is looked up.
// Throws ResourceError when MASTER_ADDR has no address or no route leads there: never falls back to
// loopback, which would make each node a world of its own.
ListenAddress choose_listen_address(const Environment& environment);

}  // namespace ddproof
