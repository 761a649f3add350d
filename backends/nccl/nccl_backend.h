// The backend `nccl`: NCCL between CUDA devices, one per rank.
//
// Threads: any; holds no state but its capabilities.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backends/api/backend.h"
#include "backends/api/process_host.h"

namespace ddproof {

// Why this process cannot use NCCL: no device, no driver, too old a library. Empty: it can.
std::string why_no_nccl();

class NcclBackend final : public Backend {
 public:
  explicit NcclBackend(ProcessHost host);

  std::string_view name() const override { return "nccl"; }
  const Capabilities& capabilities() const override { return *capabilities_; }
  // Each rank is a task of an operating system's Runtime and has the device of its number. Throws
  // ConfigError when there are fewer devices than ranks.
  WorldReport run_world(const WorldOptions& options,
                        const std::function<void(RankContext&)>& body) override;
  bool joins_processes() const override { return true; }
  // As GlooBackend::join(). The device is that of LOCAL_RANK, 0 when it is not set. Throws
  // ConfigError when there is none, or when two ranks have the same.
  std::unique_ptr<ProcessGroup> join(const Membership& membership, Runtime& runtime,
                                     Store& store) override;

 private:
  std::unique_ptr<ProcessGroup> join_on(std::optional<int> device, const Membership& membership,
                                        Runtime& runtime, Store& store);

  ProcessHost host_;
  std::shared_ptr<const Capabilities> capabilities_;
};

}  // namespace ddproof
