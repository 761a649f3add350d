// A part of the world under the scenario's name for it, in which verdicts tell of its calls.
//
// Threads: as the part.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backends/api/process_group.h"

namespace ddproof::scenario {

class NamedGroup final : public ProcessGroup {
 public:
  NamedGroup(std::unique_ptr<ProcessGroup> part, std::string name)
      : ProcessGroup(part->rank(), part->size(), part->default_timeout(), std::move(name)),
        part_(std::move(part)) {}

  std::string_view backend_name() const override { return part_->backend_name(); }
  const Capabilities& capabilities() const override { return part_->capabilities(); }
  std::unique_ptr<ProcessGroup> split(int color, int key, CallSite site) override {
    return part_->split(color, key, site);
  }
  void abort() override { part_->abort(); }
  void prepare(Call& call) override { part_->prepare(call); }
  WorkPtr submit(Call&& call) override { return part_->submit(std::move(call)); }

 private:
  std::unique_ptr<ProcessGroup> part_;
};

}  // namespace ddproof::scenario
