// A GlooConnection over Gloo's own TCP transport, with our key-value store for the rendezvous and
// for finding out who is lost.
//
// Keys, all below the connection's prefix ("gloo/<generation>", sub-groups "<parent>/<name>"):
//   here/<rank>     the rank has come                  mesh/...        Gloo's own addresses
//   broken/<rank>   a call failed on this rank: "timeout" or "broken"
//   verdict         what the ranks agreed on: the first to know sets it, the others take it over
// and lost/<generation>/<rank>, set by a rank that leaves and, as its last will, by the store for
// one that dies.
// Threads: as GlooConnection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/api/runtime.h"
#include "backends/api/store.h"
#include "backends/gloo/gloo_connection.h"

namespace gloo::transport {
class Device;
}

namespace ddproof {

// What all connections of one rank share. `runtime` and `store` must outlive them.
struct TcpWorld {
  Runtime& runtime;
  Store& store;
  std::shared_ptr<gloo::transport::Device> device;
  std::string lost_prefix;  // "lost/<generation>/"
};

// Who this rank is in the group to connect.
struct TcpGroup {
  std::string prefix;
  int rank = 0;
  std::vector<int> world_ranks;  // of each rank of the group
};

// Waits for all ranks and connects each with each. Throws CommError{kTimeout} that names the ranks
// that did not come, CommError{kPeerLost} when connecting fails.
std::unique_ptr<GlooConnection> connect_over_tcp(const TcpWorld& world, const TcpGroup& group,
                                                 Duration timeout);

}  // namespace ddproof
