// A Backend whose groups are checked (checked_process_group.h) where the options ask for it.
//
// Threads: as the wrapped backend.
#pragma once

#include <memory>

#include "backends/api/backend.h"

namespace ddproof {

class CheckedBackend final : public Backend {
 public:
  explicit CheckedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return inner_->joins_processes(); }
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override;

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace ddproof
