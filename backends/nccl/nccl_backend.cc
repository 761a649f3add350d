#include "backends/nccl/nccl_backend.h"

#include <charconv>
#include <utility>

#include "backends/membership/meeting.h"
#include "backends/nccl/nccl_process_group.h"

namespace ddproof {
namespace {

int local_rank(const Environment& environment) {
  const std::string text = environment.get("LOCAL_RANK").value_or("0");
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  throw ConfigError("backend nccl: LOCAL_RANK is \"" + text + "\", it must be a number from 0");
}

void require_device(int device) {
  const int count = nccl::count_devices();
  if (device < count) return;
  throw ConfigError(
      "backend nccl: LOCAL_RANK is " + std::to_string(device) + ", but there " +
      (count == 1 ? "is 1 CUDA device" : "are " + std::to_string(count) + " CUDA devices") +
      " here; start at most one rank per device, and see CUDA_VISIBLE_DEVICES");
}

}  // namespace

std::string why_no_nccl() {
  try {
    if (nccl::count_devices() == 0) return "no CUDA device";
    nccl::require_nccl_version();
    return "";
  } catch (const nccl::LibraryError& error) {
    return error.what();
  }
}

NcclBackend::NcclBackend(ProcessHost host)
    : host_(std::move(host)),
      capabilities_(std::make_shared<const Capabilities>(nccl_capabilities())) {}

std::unique_ptr<ProcessGroup> NcclBackend::join(const Membership& membership, Runtime& runtime,
                                                Store& store) {
  return join_on(std::nullopt, membership, runtime, store);
}

std::unique_ptr<ProcessGroup> NcclBackend::join_on(std::optional<int> device,
                                                   const Membership& membership, Runtime& runtime,
                                                   Store& store) {
  const JoinedWorld joined = join_world("nccl", membership, runtime, store);
  nccl::NcclWorld world{{joined.world}, 0, std::make_shared<nccl::PinnedPool>(runtime)};
  try {
    nccl::require_nccl_version();
    world.device = device ? *device : local_rank(runtime.environment());
    require_device(world.device);
  } catch (const std::exception& error) {  // this rank's own: the peers would wait for it
    tell_cannot_connect(world, joined.everybody, error.what());
    throw;
  }
  return std::make_unique<NcclProcessGroup>(
      nccl::NcclLink::connect(world, joined.everybody, membership.timeout), runtime,
      membership.timeout, capabilities_);
}

WorldReport NcclBackend::run_world(const WorldOptions& options,
                                   const std::function<void(RankContext&)>& body) {
  require_membership("nccl", {.rank = 0, .world_size = options.world_size});
  const int count = nccl::count_devices();
  if (options.world_size > count) {
    throw ConfigError("backend nccl: world size is " + std::to_string(options.world_size) +
                      ", but the CUDA devices here are " + std::to_string(count) +
                      "; every rank needs one of its own");
  }
  run_in_process(
      host_, options,
      [this](const Membership& membership, Runtime& runtime, Store& store) {
        return join_on(membership.rank, membership, runtime, store);
      },
      body);
  return {};
}

}  // namespace ddproof
