// A ProcessGroup over NCCL: buffers in the memory of the rank's CUDA device, or in host memory and
// staged through the device.
//
// Invariants: one task of the Runtime puts the calls into the device's queues, in their order, and
// stays with those on host memory until they are done; another one watches the others
// (in_flight.h). No wait is inside CUDA or NCCL: the tasks ask for events and asynchronous errors
// through the Runtime, until the call's deadline. A call that fails closes the group, its
// communicator is aborted, and the ranks agree at the store on what it was. Not the same bits in
// every run: NCCL chooses its algorithm by size, topology and environment. Threads: as
// ProcessGroup; abort() from any task.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/api/process_group.h"
#include "backends/api/runtime.h"
#include "backends/api/serial_queue.h"
#include "backends/nccl/in_flight.h"
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
  void prepare(Call& call) override;
  WorkPtr submit(Call&& call) override;

 private:
  WorkPtr execute(std::span<const Call* const> calls);
  // The error of a call that fails by the exception that is being handled. Never throws.
  std::exception_ptr failure_of(const Call& call);
  void leave(const std::string& why);

  std::unique_ptr<nccl::NcclLink> link_;
  Runtime& runtime_;
  std::shared_ptr<const Capabilities> capabilities_;
  int uncaught_at_start_;
  std::atomic<bool> aborted_ = false;
  nccl::InFlight in_flight_;
  SerialQueue queue_;  // last: its task uses all the others
};

}  // namespace ddproof
