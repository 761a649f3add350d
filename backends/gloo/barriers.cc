// barrier is Gloo's. monitored_barrier is ours: every rank sends a token to rank 0, which answers
// with who did not come. A wait that merely times out makes Gloo close every connection, and then
// rank 0 could tell nobody; so a watch ends the waits instead (abortWaitRecv, abortWaitSend).
#include <gloo/barrier.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/api/list_of.h"
#include "backends/gloo/operations.h"
#include "backends/gloo/slots.h"

namespace ddproof::gloo_operations {
namespace {

using BufferPtr = std::unique_ptr<gloo::transport::UnboundBuffer>;

// Calls `on_deadline` once the deadline has passed, unless destroyed before.
class Watch {
 public:
  Watch(Runtime& runtime, Duration timeout, const CallSite& site, std::function<void()> on_deadline)
      : monitor_(runtime.make_monitor()) {
    if (timeout == kForever) return;
    const TimePoint deadline = deadline_after(runtime.now(), timeout);
    task_ = runtime.spawn("monitored_barrier watch", [this, deadline, site, on_deadline] {
      MonitorLock lock(*monitor_);
      while (!over_) {
        if (!monitor_->wait(deadline, {"the deadline of a monitored barrier", site, {}})) break;
      }
      if (!over_) on_deadline();
    });
  }
  ~Watch() {
    if (!task_) return;
    {
      MonitorLock lock(*monitor_);
      over_ = true;
      monitor_->notify_all();
    }
    task_->join();
  }

 private:
  std::unique_ptr<Monitor> monitor_;  // guards over_
  bool over_ = false;
  std::unique_ptr<Task> task_;
};

Finding missing_ranks(std::vector<int> missing, Duration timeout, bool all) {
  if (!all) missing.erase(missing.begin() + 1, missing.end());
  std::string what = did_not_come(missing, timeout);
  return {CommErrorKind::kTimeout, std::move(missing), what};
}

// Rank 0: which ranks have not sent their token when the deadline passes.
std::vector<int> collect_arrivals(const Operation& operation) {
  const int size = operation.context->size;
  std::vector<std::uint8_t> tokens(static_cast<std::size_t>(size), 0);
  std::vector<BufferPtr> buffers(static_cast<std::size_t>(size));
  for (int rank = 1; rank < size; ++rank) {
    buffers[rank] = operation.context->createUnboundBuffer(&tokens[rank], 1);
    buffers[rank]->recv(rank, slot(SlotPrefix::kArrival, operation.tag));
  }
  Watch watch(operation.runtime, operation.call.timeout, operation.call.site, [&buffers] {
    for (const BufferPtr& buffer : buffers) {
      if (buffer) buffer->abortWaitRecv();
    }
  });
  std::vector<int> missing;
  for (int rank = 1; rank < size; ++rank) {
    if (buffers[rank]->waitRecv(kGlooForever)) continue;
    // Ended by the watch; but the token may have come before, or come this very moment.
    const std::atomic_ref<std::uint8_t> token(tokens[rank]);
    if (token.load() == 0) missing.push_back(rank);
  }
  return missing;
}

// Rank 0: tells the ranks that came, in one byte per rank, who is missing.
void tell_verdict(const Operation& operation, const std::vector<int>& missing) {
  const int size = operation.context->size;
  std::vector<std::uint8_t> verdict(static_cast<std::size_t>(size), 0);
  for (int rank : missing) verdict[rank] = 1;
  std::vector<BufferPtr> buffers;
  for (int rank = 1; rank < size; ++rank) {
    if (verdict[rank] != 0) continue;
    buffers.push_back(operation.context->createUnboundBuffer(verdict.data(), verdict.size()));
    buffers.back()->send(rank, slot(SlotPrefix::kVerdict, operation.tag));
  }
  for (const BufferPtr& buffer : buffers) buffer->waitSend(operation.timeout);
}

// Other ranks: announces this rank and learns who is missing.
std::vector<int> await_verdict(const Operation& operation) {
  std::uint8_t token = 1;
  std::vector<std::uint8_t> verdict(static_cast<std::size_t>(operation.context->size), 0);
  const BufferPtr arrival = operation.context->createUnboundBuffer(&token, 1);
  const BufferPtr answer = operation.context->createUnboundBuffer(verdict.data(), verdict.size());
  answer->recv(0, slot(SlotPrefix::kVerdict, operation.tag));
  arrival->send(0, slot(SlotPrefix::kArrival, operation.tag));
  // Rank 0 may have come a whole timeout after this rank, and then waits as long for the others.
  const Duration timeout = operation.call.timeout;
  const Duration patience =
      deadline_after(deadline_after(timeout, timeout), std::chrono::seconds(1));
  Watch watch(operation.runtime, patience, operation.call.site, [&] {
    arrival->abortWaitSend();
    answer->abortWaitRecv();
  });
  if (!arrival->waitSend(kGlooForever) || !answer->waitRecv(kGlooForever)) return {0};
  std::vector<int> missing;
  for (int rank = 0; rank < operation.context->size; ++rank) {
    if (verdict[rank] != 0) missing.push_back(rank);
  }
  return missing;
}

}  // namespace

void barrier(const Operation& operation) {
  gloo::BarrierOptions options(operation.context);
  options.setTag(operation.tag);
  options.setTimeout(operation.timeout);
  gloo::barrier(options);
}

void monitored_barrier(const Operation& operation) {
  std::vector<int> missing;
  if (operation.context->rank == 0) {
    missing = collect_arrivals(operation);
    tell_verdict(operation, missing);
  } else {
    missing = await_verdict(operation);
  }
  if (missing.empty()) return;
  throw FoundOut{
      missing_ranks(std::move(missing), operation.call.timeout, operation.call.wait_all_ranks)};
}

}  // namespace ddproof::gloo_operations
