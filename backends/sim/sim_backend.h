// The backend "sim": many ranks as fibers in this process, the real Gloo library between them.
#pragma once

#include "backends/api/backend.h"

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
};

}  // namespace ddproof
