#include "tests/nccl/standin_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "backends/nccl/nccl_backend.h"
#include "backends/nccl/nccl_process_group.h"
#include "backends/sim/sim_files.h"
#include "backends/sim/sim_runtime.h"
#include "backends/sim/sim_world.h"
#include "backends/store/memory_store.h"

namespace ddproof {
namespace {

using standin::Machine;
using standin::MachineOptions;
using standin::MachineScope;

// A rank that was stuck has the simulator's error; callers know CommError.
void make_comm_errors(sim::Report& report) {
  for (sim::RankReport& rank : report.ranks) {
    if (!rank.error) continue;
    try {
      with_comm_errors([&] { std::rethrow_exception(rank.error); });
    } catch (...) {
      rank.error = std::current_exception();
    }
  }
}

class World {
 public:
  World(int ranks, std::uint64_t seed, MachineOptions options)
      : simulation_({.ranks = ranks, .seed = seed, .scheduler = &scheduler_}),
        files_(simulation_, disk_),
        machine_(simulation_, with_seed(std::move(options), seed)) {}

  sim::Simulation& simulation() { return simulation_; }
  SimFileSystem& files() { return files_; }

  StandinReport run(const std::function<void(int rank)>& body) {
    for (int rank = 0; rank < simulation_.ranks(); ++rank) {
      simulation_.spawn(rank, "main", [&body, rank] { body(rank); });
    }
    const MachineScope scope(machine_);
    StandinReport report;
    report.run = simulation_.run();
    make_comm_errors(report.run);
    machine_.complain_about_leaks();
    report.complaints = machine_.complaints();
    report.missed = machine_.missed();
    return report;
  }

 private:
  static MachineOptions with_seed(MachineOptions options, std::uint64_t seed) {
    options.seed = seed;
    return options;
  }

  sim::RandomWalk scheduler_;
  sim::Simulation simulation_;
  sim::Disk disk_;
  SimFileSystem files_;
  Machine machine_;
};

}  // namespace

StandinReport run_on_machine(int ranks, const MachineOptions& options, std::uint64_t seed,
                             const std::function<void(int rank)>& body) {
  return World(ranks, seed, options).run(body);
}

StandinReport run_standin_world(const StandinWorldOptions& options,
                                const std::function<void(RankContext&)>& body) {
  const int size = options.world.world_size;
  World world(size, options.world.seed, options.machine);
  SimRuntime owner(world.simulation(), 0, world.files(), {});
  const auto server = std::make_shared<MemoryStoreServer>(owner);
  return world.run([&](int rank) {
    if (std::ranges::count(options.absent, rank) > 0) return;
    EnvironmentMap environment = launcher_environment(options.world, rank);
    if (!options.local_ranks.empty()) {
      environment["LOCAL_RANK"] =
          std::to_string(options.local_ranks[static_cast<std::size_t>(rank)]);
    }
    SimRuntime runtime(world.simulation(), rank, world.files(), std::move(environment));
    MemoryStore own_store(server, runtime);
    const auto wrapped = options.wrap_store ? options.wrap_store(rank, own_store) : nullptr;
    Store& store = wrapped ? *wrapped : own_store;
    try {
      const auto group = NcclBackend({}).join(
          {.rank = rank, .world_size = size, .timeout = options.world.timeout}, runtime, store);
      RankContext context{*group, runtime};
      body(context);
    } catch (const sim::RankKilled&) {
      own_store.die();
      throw;
    }
  });
}

StandinBackend::StandinBackend() : capabilities_(nccl_capabilities()) {
  capabilities_.virtual_time = true;
}

WorldReport StandinBackend::run_world(const WorldOptions& options,
                                      const std::function<void(RankContext&)>& body) {
  if (options.world_size < 1) {
    throw ConfigError("world size is " + std::to_string(options.world_size));
  }
  StandinWorldOptions standin{options};
  standin.machine.devices = std::max(options.world_size, standin.machine.devices);
  const StandinReport report = run_standin_world(standin, body);
  for (const std::string& complaint : report.complaints) ADD_FAILURE() << complaint;
  rethrow(report.run);
  return {.digest = report.run.digest,
          .virtual_time = Duration(report.run.virtual_time),
          .switches = report.run.switches};
}

std::unique_ptr<ProcessGroup> StandinBackend::join(const Membership&, Runtime&, Store&) {
  throw CommError(CommErrorKind::kUnsupported, "[nccl] join: the stand-in lives in one process");
}

}  // namespace ddproof
