// Gloo's transport interface over the Fabric: what lets the unmodified Gloo library run between
// simulated ranks. Its waits switch fibers, its timeouts are virtual time.
//
// The unbound buffers are those of Gloo's newer algorithms and of our process group. Left out,
// because neither uses them: buffers bound to a pair, which throw gloo::InvalidOperationException.
// As over TCP, a wait that times out breaks all connections of its context.
// Texts of errors follow Gloo over TCP: "Timed out waiting 1500ms for recv operation to complete",
// "Connection closed by peer [rank 3]". A deadlock is CommError{kDeadlock}.
// Threads: that of the Simulation.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>

#include <memory>
#include <string>

#include "backends/sim/fabric.h"

namespace ddproof {

// One rank's connected gloo::Context. Destroying it closes the endpoint.
std::shared_ptr<gloo::Context> make_gloo_context(Endpoint& endpoint);

}  // namespace ddproof
