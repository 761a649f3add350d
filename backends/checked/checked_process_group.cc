#include "backends/checked/checked_process_group.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "backends/api/list_of.h"
#include "backends/checked/fingerprint.h"

namespace ddproof {
namespace {

// A rank that does not come to a monitored barrier is missed by the comparison already. Says it in
// the monitored barrier's way: the first missing rank, or all on request.
[[noreturn]] void rethrow_as_missing(const ProcessGroup& group, const Call& call,
                                     const CommError& error) {
  if (error.kind() != CommErrorKind::kTimeout || error.culprits().empty()) throw;
  std::vector<int> missing = error.culprits();
  if (!call.wait_all_ranks) missing = {missing.front()};
  throw CommError(CommErrorKind::kTimeout,
                  group.who() + " " + call.describe() + ": " + did_not_come(missing, call.timeout) +
                      "; look at what they do instead, or raise the timeout",
                  missing);
}

}  // namespace

CheckedProcessGroup::CheckedProcessGroup(ProcessGroup& inner, Runtime& runtime)
    : ForwardingProcessGroup(inner),
      runtime_(runtime),
      uncaught_at_start_(std::uncaught_exceptions()),
      queue_(runtime, std::string(inner.backend_name()) + " checks", *this,
             [this](std::span<const Call* const> calls) { return execute(calls); }) {}

CheckedProcessGroup::CheckedProcessGroup(std::unique_ptr<ProcessGroup> inner, Runtime& runtime)
    : CheckedProcessGroup(*inner, runtime) {
  owned_ = std::move(inner);
}

CheckedProcessGroup::~CheckedProcessGroup() {
  if (std::uncaught_exceptions() > uncaught_at_start_) abort();
}

WorkPtr CheckedProcessGroup::submit(Call&& call) {
  if (size() == 1) return inner_.submit(std::move(call));  // nobody to compare with
  return queue_.submit(std::move(call));
}

WorkPtr CheckedProcessGroup::execute(std::span<const Call* const> calls) {
  const TimePoint begin = runtime_.now();
  for (const Call* call : calls) compare(*call);
  WorkPtr last;
  for (const Call* call : calls) {
    Call allowed = *call;
    allowed.timeout = time_left(runtime_.now(), deadline_after(begin, call->timeout));
    last = inner_.submit(std::move(allowed));  // which fails when one before it has
  }
  // On a device it goes on by itself, and the caller's wait() is the one that its stream needs.
  if (are_on_device(calls)) return last;
  last->wait();
  return nullptr;
}

void CheckedProcessGroup::compare(const Call& call) {
  if (is_point_to_point(call.op)) return compare_with_peer(inner_, call, call.timeout);
  try {
    compare_collective(inner_, call, call.timeout);
  } catch (const CommError& error) {
    if (call.op != Op::kMonitoredBarrier) throw;
    rethrow_as_missing(*this, call, error);
  }
}

std::unique_ptr<ProcessGroup> CheckedProcessGroup::split(int color, int key, CallSite site) {
  barrier({.label = "split"}, site)->wait();
  std::unique_ptr<ProcessGroup> part = inner_.split(color, key, site);
  if (!part) return nullptr;
  return std::make_unique<CheckedProcessGroup>(std::move(part), runtime_);
}

void CheckedProcessGroup::abort() {
  queue_.fail_all(std::make_exception_ptr(CommError(
      CommErrorKind::kAborted, who() + ": abort() was called on this rank; make a new group")));
  inner_.abort();
}

}  // namespace ddproof
