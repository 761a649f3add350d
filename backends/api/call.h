// One call on a ProcessGroup, as data: what a backend executes, what the checked decorator
// compares between ranks, and what traces and verdicts print.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/api/buffer.h"
#include "backends/api/call_site.h"
#include "backends/api/time.h"

namespace ddproof {

enum class Op : std::uint8_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kGather,
  kScatter,
  kAllToAll,
  kSend,
  kRecv,
  kBarrier,
  kMonitoredBarrier,
};

// Values, where standards leave room (SEMANTICS 12.2):
//   integers  wrap modulo 2^n; kAverage divides the wrapped sum, rounding toward zero
//   kAverage  the sum, then one true division by the group's size
//   kMin/kMax NaN if any rank has NaN; -0 is less than +0; so the rank order never shows
enum class ReduceOp : std::uint8_t { kSum, kAverage, kMin, kMax, kProduct };

// "all_reduce", "sum", ...
const char* to_string(Op op);
const char* to_string(ReduceOp op);
inline bool is_point_to_point(Op op) { return op == Op::kSend || op == Op::kRecv; }
inline bool reduces(Op op) {
  return op == Op::kAllReduce || op == Op::kReduce || op == Op::kReduceScatter;
}

struct Call {
  Op op = Op::kBarrier;
  ReduceOp reduce_op = ReduceOp::kSum;  // all_reduce, reduce, reduce_scatter
  int root = -1;                        // broadcast, reduce, gather, scatter
  int peer = -1;                        // send: to; recv: from
  std::uint32_t tag = 0;                // send, recv
  bool wait_all_ranks = false;          // monitored_barrier
  ConstBuffer input;
  Buffer output;      // for the in-place operations, input and output are the same memory
  std::string group;  // its name: empty for the world
  std::string label;
  CallSite site;
  Duration timeout = kForever;
  std::uint64_t sequence = 0;  // 1, 2, ... per group; one count for collectives, one for send/recv
  // Of a call on device memory: the point in its stream up to which it waits for the data. The
  // backend's own type, made by ProcessGroup::prepare().
  std::shared_ptr<const void> ready;
  // The next call is of the same coalesce(): a backend may execute both together.
  bool more_follow = false;
  // Set by a decorator on calls that it makes for another one: messages then speak of that one.
  std::shared_ptr<const Call> on_behalf_of;

  // "all_reduce #12 (sum, float32 [1024], group 1.0, bucket 0) at reducer.cc:88". For a collective
  // it reads the same on every rank that makes the same call: it shows the buffer whose size does
  // not depend on the rank's role.
  std::string describe() const;
  // What ranks compare: describe(), but for the line where the site says so.
  std::string fingerprint() const { return std::string(fingerprint_in(describe())); }
  // The same as a part of what describe() returned.
  std::string_view fingerprint_in(std::string_view description) const;

  // That of the buffers that are not empty; null: they are in host memory.
  void* stream() const {
    if (input.count() > 0) return input.stream();
    return output.count() > 0 ? output.stream() : nullptr;
  }
};

// Of the calls of one coalesce().
inline bool are_on_device(std::span<const Call* const> calls) {
  return std::ranges::any_of(calls, [](const Call* call) { return call->stream() != nullptr; });
}

}  // namespace ddproof
