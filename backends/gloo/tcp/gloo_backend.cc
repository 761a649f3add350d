#include "backends/gloo/tcp/gloo_backend.h"

#include <gloo/transport/tcp/device.h>

#include <utility>

#include "backends/gloo/gloo_process_group.h"
#include "backends/gloo/tcp/address.h"
#include "backends/gloo/tcp/sched_batch.h"
#include "backends/gloo/tcp/sigpipe_blocked.h"
#include "backends/gloo/tcp/tcp_connection.h"
#include "backends/membership/meeting.h"
#include "backends/membership/whereabouts.h"

namespace ddproof {
namespace {

using DevicePtr = std::shared_ptr<gloo::transport::Device>;

DevicePtr make_device(const ListenAddress& address) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = address.host;
  attributes.iface = address.interface;
  // The device's thread writes to sockets, and a peer may be gone: that must not end the process.
  const SigpipeBlocked blocked;
  const SchedBatch batch;
  try {
    return gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    throw ConfigError(
        "gloo: cannot listen on " +
        (address.interface.empty() ? "address " + address.host : "interface " + address.interface) +
        " (" + error.what() + "); set GLOO_SOCKET_IFNAME to a network interface of this machine");
  }
}

std::unique_ptr<ProcessGroup> join_over(const DevicePtr& device, const Membership& membership,
                                        Runtime& runtime, Store& store,
                                        const std::shared_ptr<const Capabilities>& capabilities) {
  JoinedWorld joined = join_world("gloo", membership, runtime, store);
  joined.world.whereabouts = std::make_shared<Whereabouts>(runtime);
  const TcpWorld world{{joined.world}, device};
  return std::make_unique<GlooProcessGroup>(
      connect_over_tcp(world, joined.everybody, membership.timeout), runtime,
      GlooGroupOptions{.backend_name = "gloo",
                       .capabilities = capabilities,
                       .default_timeout = membership.timeout});
}

}  // namespace

GlooBackend::GlooBackend(ProcessHost host)
    : host_(std::move(host)),
      capabilities_(std::make_shared<const Capabilities>(gloo_capabilities())) {}

std::unique_ptr<ProcessGroup> GlooBackend::join(const Membership& membership, Runtime& runtime,
                                                Store& store) {
  require_membership("gloo", membership);
  return join_over(make_device(choose_listen_address(runtime.environment())), membership, runtime,
                   store, capabilities_);
}

WorldReport GlooBackend::run_world(const WorldOptions& options,
                                   const std::function<void(RankContext&)>& body) {
  require_membership("gloo", {.rank = 0, .world_size = options.world_size});
  const DevicePtr device = make_device({.host = "127.0.0.1"});
  run_in_process(
      host_, options,
      [&](const Membership& membership, Runtime& runtime, Store& store) {
        return join_over(device, membership, runtime, store, capabilities_);
      },
      body);
  return {};
}

}  // namespace ddproof
