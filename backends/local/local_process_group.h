// A group of one rank: every operation is at most a copy, done when the call returns.
//
// Threads: as ProcessGroup.
#pragma once

#include <memory>
#include <string_view>

#include "backends/api/process_group.h"

namespace ddproof {

Capabilities local_capabilities();

class LocalProcessGroup final : public ProcessGroup {
 public:
  explicit LocalProcessGroup(Duration default_timeout = std::chrono::minutes(30),
                             std::string name = {});

  std::string_view backend_name() const override { return "single"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<ProcessGroup> split(int color, int key, CallSite site) override;
  void abort() override { aborted_ = true; }
  WorkPtr submit(Call&& call) override;

 private:
  Capabilities capabilities_;
  bool aborted_ = false;
};

}  // namespace ddproof
