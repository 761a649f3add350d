// A GlooConnection over Gloo's own TCP transport, with our key-value store for the rendezvous and
// for finding out who is lost (keys: store_group.h, and mesh/... for Gloo's own addresses).
//
// Invariant: when a rank of the group dies, or its ranks agree on a verdict, every wait of this
// rank inside Gloo ends (loss_watch.h, abortable_transport.h), whatever Gloo notices by itself.
// Costs one task and one connection to the store per group; calls ask the store nothing.
// Threads: as GlooConnection.
#pragma once

#include <memory>

#include "backends/gloo/gloo_connection.h"
#include "backends/membership/store_group.h"

namespace gloo::transport {
class Device;
}

namespace ddproof {

struct TcpWorld : StoreWorld {
  std::shared_ptr<gloo::transport::Device> device;
};

// Waits for all ranks and connects each with each. Throws CommError{kTimeout} that names the ranks
// that did not come, CommError{kPeerLost} when connecting fails; it names the ranks that died, or
// that could not connect. Throws ResourceError when this rank cannot, for want of a thread or a
// descriptor.
std::unique_ptr<GlooConnection> connect_over_tcp(const TcpWorld& world, const StoreGroup& group,
                                                 Duration timeout);

}  // namespace ddproof
