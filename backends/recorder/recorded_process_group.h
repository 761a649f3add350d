// A ProcessGroup whose calls, and those of its sub-groups, go into a FlightRecorder.
//
// Adds no message and no wait. Threads: as the other group's.
#pragma once

#include <memory>

#include "backends/api/forwarding_process_group.h"
#include "backends/api/runtime.h"
#include "backends/recorder/flight_recorder.h"

namespace ddproof {

class RecordedProcessGroup final : public ForwardingProcessGroup {
 public:
  // All must outlive this, and `runtime` and `recorder` also all Work that it hands out.
  RecordedProcessGroup(ProcessGroup& inner, Runtime& runtime, FlightRecorder& recorder);
  RecordedProcessGroup(std::unique_ptr<ProcessGroup> inner, Runtime& runtime,
                       FlightRecorder& recorder);

  std::unique_ptr<ProcessGroup> split(int color, int key, CallSite site) override;
  WorkPtr submit(Call&& call) override;

 private:
  std::unique_ptr<ProcessGroup> owned_;  // null when borrowed
  Runtime& runtime_;
  FlightRecorder& recorder_;
};

}  // namespace ddproof
