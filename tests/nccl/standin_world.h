// Worlds of the backend `nccl` on the CPU stand-in (backends/nccl/standin): each rank is a fiber
// with a simulated device, time is virtual.
//
// Threads: a run uses the calling thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/backend.h"
#include "backends/nccl/standin/machine.h"
#include "simulator/report.h"

namespace ddproof {

struct StandinWorldOptions {
  WorldOptions world;
  // `devices` 0 stands for none. The seed is the world's.
  standin::MachineOptions machine = {};
  std::vector<int> local_ranks = {};  // by rank; empty: as a launcher gives them
  std::vector<int> absent = {};       // ranks that never join
  // What a rank's backend gets in place of its store; null: the store itself.
  std::function<std::unique_ptr<Store>(int rank, Store& store)> wrap_store = nullptr;
};

struct StandinReport {
  sim::Report run;                      // what ranks threw is in it
  std::vector<std::string> complaints;  // misuses of CUDA and NCCL, and leaks
  std::vector<std::string> missed;      // who did not come to a collective that was given up
};

// Runs `body` once per rank, each with a group that the backend `nccl` made.
StandinReport run_standin_world(const StandinWorldOptions& options,
                                const std::function<void(RankContext&)>& body);

// Runs `body` once per rank with no group: tests of the C API itself.
StandinReport run_on_machine(int ranks, const standin::MachineOptions& options, std::uint64_t seed,
                             const std::function<void(int rank)>& body);

// The backend `nccl` on the stand-in. A misuse of CUDA or NCCL is a test failure.
class StandinBackend final : public Backend {
 public:
  StandinBackend();

  std::string_view name() const override { return "nccl"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return false; }
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override;

 private:
  Capabilities capabilities_;
};

}  // namespace ddproof
