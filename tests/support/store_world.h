// Simulated processes that meet at one store: what agents are to each other. Virtual time, one
// process a rank; who crashes loses its connection to the store, which executes its last wills.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/sim/sim_files.h"
#include "backends/sim/sim_runtime.h"
#include "backends/store/memory_store.h"
#include "simulator/simulation.h"

namespace ddproof {

class StoreWorld {
 public:
  // Requires: 0 <= processes. One more rank, the last, acts on the others: director().
  explicit StoreWorld(int processes, sim::SimulationOptions options = {})
      : simulation_(with_ranks(std::move(options), processes + 1)), files_(simulation_, disk_) {
    for (int rank = 0; rank <= processes; ++rank) {
      runtimes_.push_back(
          std::make_unique<SimRuntime>(simulation_, rank, files_, EnvironmentMap{}));
    }
    server_ = std::make_shared<MemoryStoreServer>(*runtimes_[0]);
    for (const auto& runtime : runtimes_) {
      stores_.push_back(std::make_unique<MemoryStore>(server_, *runtime));
    }
  }

  using Body = std::function<void(Runtime&, Store&)>;

  // A process begins after `delay`. When its body returns or throws it says goodbye.
  void start(int rank, Duration delay, Body body) {
    simulation_.spawn(rank, "process", [this, rank, delay, body = std::move(body)] {
      if (delay > Duration::zero()) simulation_.sleep(delay.count());
      body(runtime(rank), store(rank));
    });
  }
  void direct(std::function<void(Runtime&)> body) {
    const int rank = static_cast<int>(runtimes_.size()) - 1;
    simulation_.spawn(rank, "director",
                      [this, rank, body = std::move(body)] { body(runtime(rank)); });
  }
  // For the director.
  void crash(int rank) {
    stores_[static_cast<std::size_t>(rank)]->die();
    simulation_.crash(rank);
  }
  // It stays connected, and silent.
  void hang(int rank) { simulation_.hang(rank); }

  sim::Report run() { return simulation_.run(); }
  sim::Simulation& simulation() { return simulation_; }
  SimRuntime& runtime(int rank) { return *runtimes_[static_cast<std::size_t>(rank)]; }
  Store& store(int rank) { return *stores_[static_cast<std::size_t>(rank)]; }

 private:
  static sim::SimulationOptions with_ranks(sim::SimulationOptions options, int ranks) {
    options.ranks = ranks;
    options.patience_runs_out = true;
    return options;
  }

  sim::Simulation simulation_;
  sim::Disk disk_;
  SimFileSystem files_;
  std::vector<std::unique_ptr<SimRuntime>> runtimes_;
  std::shared_ptr<MemoryStoreServer> server_;
  std::vector<std::unique_ptr<MemoryStore>> stores_;
};

}  // namespace ddproof
