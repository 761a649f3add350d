// A backend whose calls all go through device memory, whatever memory the caller has: so that the
// contract's tests hold for it too.
//
// Threads: as the other backend.
#pragma once

#include <memory>
#include <string_view>

#include "backends/api/backend.h"

namespace ddproof {

class OnDeviceBackend final : public Backend {
 public:
  // Requires: capabilities().device_buffers, and CUDA.
  explicit OnDeviceBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  // A call's result is in the caller's memory after wait(), or after the handle was dropped.
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return false; }
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override {
    return inner_->join(membership, runtime, store);
  }

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace ddproof
