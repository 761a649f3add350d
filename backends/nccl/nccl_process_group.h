// A ProcessGroup over NCCL: buffers in host memory, staged through the rank's CUDA device.
//
// Invariants: calls run one after another in one task of the Runtime. No wait is inside CUDA or
// NCCL: the task asks for events and asynchronous errors through the Runtime, until the call's
// deadline. A call that fails closes the group, its communicator is aborted, and the ranks agree at
// the store on what it was. Not the same bits in every run: NCCL chooses its algorithm by size,
// topology and environment.
// Threads: as ProcessGroup; abort() from any task.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "backends/api/process_group.h"
#include "backends/api/runtime.h"
#include "backends/api/serial_queue.h"
#include "backends/nccl/nccl_link.h"

namespace ddproof {

Capabilities nccl_capabilities();

class NcclProcessGroup final : public ProcessGroup {
 public:
  // `runtime` must outlive the group.
  NcclProcessGroup(std::unique_ptr<nccl::NcclLink> link, Runtime& runtime, Duration default_timeout,
                   std::shared_ptr<const Capabilities> capabilities, std::string name = {});
  // Finishes what was submitted; when an exception is on its way, aborts instead.
  ~NcclProcessGroup() override;

  std::string_view backend_name() const override { return "nccl"; }
  const Capabilities& capabilities() const override { return *capabilities_; }
  // The part gets a communicator of its own, from an id of its own: ncclCommSplit would make the
  // whole group unusable when it fails, and this seam promises that the group stays usable.
  std::unique_ptr<ProcessGroup> split(int color, int key, CallSite site) override;
  void abort() override;
  WorkPtr submit(Call&& call) override;

 private:
  void execute(const Call& call);
  void leave(const std::string& why);

  std::unique_ptr<nccl::NcclLink> link_;
  Runtime& runtime_;
  std::shared_ptr<const Capabilities> capabilities_;
  int uncaught_at_start_;
  std::atomic<bool> aborted_ = false;
  SerialQueue queue_;  // last: its task uses all the others
};

}  // namespace ddproof
