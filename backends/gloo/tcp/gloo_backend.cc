#include "backends/gloo/tcp/gloo_backend.h"

#include <gloo/transport/tcp/device.h>

#include <numeric>
#include <utility>
#include <vector>

#include "backends/gloo/gloo_process_group.h"
#include "backends/gloo/tcp/address.h"
#include "backends/gloo/tcp/sigpipe_blocked.h"
#include "backends/gloo/tcp/tcp_connection.h"

namespace ddproof {
namespace {

using DevicePtr = std::shared_ptr<gloo::transport::Device>;

DevicePtr make_device(const ListenAddress& address) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = address.host;
  attributes.iface = address.interface;
  // The device's thread writes to sockets, and a peer may be gone: that must not end the process.
  const SigpipeBlocked blocked;
  try {
    return gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    throw ConfigError(
        "gloo: cannot listen on " +
        (address.interface.empty() ? "address " + address.host : "interface " + address.interface) +
        " (" + error.what() + "); set GLOO_SOCKET_IFNAME to a network interface of this machine");
  }
}

void require_membership(const Membership& membership) {
  if (membership.world_size < 1) {
    throw ConfigError("backend gloo: world size is " + std::to_string(membership.world_size) +
                      ", it must be at least 1");
  }
  if (membership.rank < 0 || membership.rank >= membership.world_size) {
    throw ConfigError("backend gloo: rank is " + std::to_string(membership.rank) +
                      ", allowed are 0 to " + std::to_string(membership.world_size - 1));
  }
}

// Counts how often this rank has joined on this store, so that a world that is made anew meets no
// keys of an earlier one.
std::string next_generation(const Membership& membership, Store& store) {
  const std::string rank = std::to_string(membership.rank);
  const std::string generation = std::to_string(store.add("gloo/joins/" + rank, 1));
  const std::string mine = std::to_string(membership.world_size);
  const std::string agreed = store.compare_set("gloo/" + generation + "/world_size", "", mine);
  if (agreed != mine) {
    throw ConfigError("backend gloo: WORLD_SIZE is " + mine + " on rank " + rank + ", but " +
                      agreed + " on the rank that came first; give every rank the same");
  }
  return generation;
}

std::unique_ptr<ProcessGroup> join_over(const DevicePtr& device, const Membership& membership,
                                        Runtime& runtime, Store& store,
                                        const std::shared_ptr<const Capabilities>& capabilities) {
  require_membership(membership);
  const std::string generation = next_generation(membership, store);
  const std::string lost_prefix = "lost/" + generation + "/";
  store.set_last_will(lost_prefix + std::to_string(membership.rank), "its process died");
  TcpGroup everybody{"gloo/" + generation, membership.rank, {}};
  everybody.world_ranks.resize(static_cast<std::size_t>(membership.world_size));
  std::iota(everybody.world_ranks.begin(), everybody.world_ranks.end(), 0);
  const TcpWorld world{runtime, store, device, lost_prefix, membership.store_host};
  return std::make_unique<GlooProcessGroup>(
      connect_over_tcp(world, everybody, membership.timeout), runtime,
      GlooGroupOptions{.backend_name = "gloo",
                       .capabilities = capabilities,
                       .default_timeout = membership.timeout});
}

// Runs `body` once per rank, each in a task, and returns when all have returned. No rank begins
// before all tasks have been started: when one cannot be, nobody waits for it, and what spawn()
// threw comes out.
void run_together(Runtime& owner, int world_size, const std::function<void(int rank)>& body) {
  enum class Start { kWait, kGo, kCancelled };
  const auto monitor = owner.make_monitor();
  Start start = Start::kWait;  // guarded by the monitor
  const auto decide = [&](Start decision) {
    MonitorLock lock(*monitor);
    start = decision;
    monitor->notify_all();
  };
  const auto may_go = [&] {
    MonitorLock lock(*monitor);
    while (start == Start::kWait) monitor->wait(kForever, {"all ranks' start", {}, {}});
    return start == Start::kGo;
  };
  std::vector<std::unique_ptr<Task>> tasks;
  std::exception_ptr failed;
  try {
    for (int rank = 0; rank < world_size; ++rank) {
      tasks.push_back(owner.spawn("rank " + std::to_string(rank), [&, rank] {
        if (may_go()) body(rank);
      }));
    }
  } catch (...) {
    failed = std::current_exception();
  }
  decide(failed ? Start::kCancelled : Start::kGo);
  for (const auto& task : tasks) task->join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

GlooBackend::GlooBackend(ProcessHost host)
    : host_(std::move(host)),
      capabilities_(std::make_shared<const Capabilities>(gloo_capabilities())) {}

std::unique_ptr<ProcessGroup> GlooBackend::join(const Membership& membership, Runtime& runtime,
                                                Store& store) {
  require_membership(membership);
  return join_over(make_device(choose_listen_address(runtime.environment())), membership, runtime,
                   store, capabilities_);
}

WorldReport GlooBackend::run_world(const WorldOptions& options,
                                   const std::function<void(RankContext&)>& body) {
  require_membership({.rank = 0, .world_size = options.world_size});
  const auto world_size = static_cast<std::size_t>(options.world_size);
  const auto owner = host_.make_runtime(options.seed);
  const ProcessHost::Clients connect_store = host_.make_store(*owner);
  const DevicePtr device = make_device({.host = "127.0.0.1"});
  std::vector<std::exception_ptr> errors(world_size);
  const auto run_rank = [&](int rank) {
    // The runtimes' seeds differ, so that no two ranks draw the same numbers.
    const auto runtime = host_.make_runtime(
        options.seed + 0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(rank) + 1));
    const auto store = connect_store(*runtime);
    const auto group = join_over(
        device, {.rank = rank, .world_size = options.world_size, .timeout = options.timeout},
        *runtime, *store, capabilities_);
    RankContext context{*group, *runtime};
    body(context);
  };
  run_together(*owner, options.world_size, [&](int rank) {
    try {
      run_rank(rank);
    } catch (...) {
      errors[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  });
  rethrow_root_cause(errors);
  return {};
}

}  // namespace ddproof
