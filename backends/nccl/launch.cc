#include "backends/nccl/launch.h"

#include <algorithm>

namespace ddproof::nccl {

Launch::Launch(DeviceSide& device, std::span<const Call* const> calls, const Patience& patience,
               int rank, int size)
    : device_(device), patience_(patience), name_(to_string(calls.front()->op)) {
  for (const Call* call : calls) {
    if (auto plan = make_plan(*call, rank, size)) plans_.push_back(*std::move(plan));
    if (call->ready == nullptr) continue;
    static_cast<const Event*>(call->ready.get())->hold_back(device.stream.get());
    auto* const stream = static_cast<cudaStream_t>(call->stream());
    if (std::ranges::count(streams_, stream) == 0) streams_.push_back(stream);
  }
  try {
    fill_queue();
    done_.record(device_.stream.get());
  } catch (...) {
    give_up();
    throw;
  }
}

void Launch::fill_queue() {
  std::size_t bytes = 0;
  for (const Plan& plan : plans_) bytes += plan.staging.bytes_on_device();
  std::byte* memory = device_.memory.at_least(bytes);
  for (Plan& plan : plans_) {
    plan.staging.bring_in(device_, memory);
    memory += plan.staging.bytes_on_device();
    if (const auto& own = plan.own_part) {
      check_cuda(cudaMemcpyAsync(plan.staging.out(own->to), plan.staging.in(own->from), own->bytes,
                                 cudaMemcpyDeviceToDevice, device_.stream.get()),
                 "cudaMemcpyAsync");
    }
  }
  enqueue();
  for (const Plan& plan : plans_) plan.staging.bring_out(device_);
}

// What is in the queue already may still use the callers' memory.
void Launch::give_up() noexcept {
  try {
    done_.record(device_.stream.get());
    make_streams_wait();
  } catch (const LibraryError&) {
    // The device is lost: nothing is done any more.
  }
}

void Launch::enqueue() {
  if (plans_.empty()) return;
  std::string name = plans_.front().name;
  if (plans_.size() > 1) name += " and " + std::to_string(plans_.size() - 1) + " more";
  const bool is_group = plans_.size() > 1 || plans_.front().sends_messages;
  device_.communicator.run(name, is_group, patience_, [this](ncclComm_t communicator) {
    for (const Plan& plan : plans_) {
      const ncclResult_t result = plan.enqueue(plan.staging, communicator, device_.stream.get());
      if (!is_accepted(result)) return result;
    }
    return ncclSuccess;
  });
}

void Launch::check() const {
  device_.communicator.check(name_);
  patience_.check(name_);
}

bool Launch::is_done() const { return done_.is_done(); }

void Launch::await() const {
  patience_.until(name_, [this] {
    device_.communicator.check(name_);
    return is_done();
  });
}

void Launch::deliver() const {
  for (const Plan& plan : plans_) plan.staging.deliver();
}

void Launch::make_streams_wait() const {
  for (cudaStream_t stream : streams_) done_.hold_back(stream);
}

}  // namespace ddproof::nccl
