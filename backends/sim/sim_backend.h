// The backend "sim": many ranks as fibers in this process, the real Gloo library between them.
//
// Threads: run_world() from one at a time; backends on different threads do not meet.
#pragma once

#include "backends/api/backend.h"
#include "simulator/stack.h"

namespace ddproof {

class SimBackend final : public Backend {
 public:
  SimBackend();

  std::string_view name() const override { return "sim"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  // As Backend::run_world(); throws sim::EventLimitError when the ranks go round in circles.
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return false; }
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override;

 private:
  Capabilities capabilities_;
  sim::StackPool stacks_;  // kept over runs: fresh memory costs a small world most of its time
};

}  // namespace ddproof
