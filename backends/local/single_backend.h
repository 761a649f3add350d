// The backend `single`: a world of one rank in this process, without communication.
//
// Stateless. Threads: any.
#pragma once

#include "backends/api/backend.h"

namespace ddproof {

class SingleBackend final : public Backend {
 public:
  SingleBackend();

  std::string_view name() const override { return "single"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  // Runs `body` in the calling thread. Throws ConfigError unless the world has one rank.
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return false; }
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override;

 private:
  Capabilities capabilities_;
};

}  // namespace ddproof
