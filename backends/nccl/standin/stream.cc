#include "backends/nccl/standin/stream.h"

#include <utility>

namespace ddproof::standin {

// With a process that dies, or a device that is lost, goes what is in the stream.
struct Stream::End {
  Stream& stream;
  ~End() {
    stream.work_.clear();
    stream.drained_.wake_all(stream.machine.simulation());
  }
};

void Stream::enqueue(std::function<void()> work) {
  work_.push_back(std::move(work));
  if (work_.size() > 1) return;
  machine.simulation().spawn(rank, "stream " + std::to_string(number), [this] { run(); });
}

void Stream::run() {
  sim::Simulation& simulation = machine.simulation();
  const End end{*this};
  while (!work_.empty()) {
    simulation.sleep(0, "stream");  // others may go first: this is where the orders differ
    if (device.error != cudaSuccess) return;
    work_.front()();
    work_.pop_front();
  }
}

void Stream::drain(const std::string& call, sim::WaitKind kind) {
  while (!is_idle() && !machine.simulation().has_crashed(rank)) {
    drained_.wait(machine.simulation(), {.what = call, .kind = kind, .is_local = true});
  }
}

void Event::await(Machine& machine, std::uint64_t record, const std::string& call) {
  while (reached < record) changed.wait(machine.simulation(), {.what = call, .is_local = true});
}

}  // namespace ddproof::standin
