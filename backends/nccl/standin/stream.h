// Streams and events. A stream's fiber lives while there is work in it.
//
// Threads: those of one simulation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "backends/nccl/standin/machine.h"
#include "simulator/wait_list.h"

namespace ddproof::standin {

class Stream {
 public:
  Stream(Machine& machine, Device& device, int rank, int number)
      : machine(machine), device(device), rank(rank), number(number) {}

  // `work` runs after all that was enqueued before; it may wait.
  void enqueue(std::function<void()> work);
  bool is_idle() const { return work_.empty(); }
  // Waits until it is. `kind`: kCleanup for calls that destructors make.
  void drain(const std::string& call, sim::WaitKind kind = sim::WaitKind::kCall);

  Machine& machine;
  Device& device;
  const int rank;
  const int number;
  bool destroyed = false;

 private:
  struct End;
  void run();

  std::deque<std::function<void()>> work_;  // the first one is under way
  sim::WaitList drained_;
};

class Event {
 public:
  Event(Device& device, int rank) : device(device), rank(rank) {}

  Device& device;
  const int rank;
  bool destroyed = false;
  std::uint64_t recorded = 0;  // how often it was put into a stream
  std::uint64_t reached = 0;   // the last of them that the stream has come to
  sim::WaitList changed;

  bool is_done() const { return reached >= recorded; }
  // Returns when the stream has come to this record.
  void await(Machine& machine, std::uint64_t record, const std::string& call);
};

}  // namespace ddproof::standin

struct CUstream_st : ddproof::standin::Stream {
  using Stream::Stream;
};
struct CUevent_st : ddproof::standin::Event {
  using Event::Event;
};
