// One rank's view of a group of ranks, and the collectives it may call.
//
// This is the only communication header that the trainer needs. Every backend implements it, and
// tests/contract runs the same checks on each.
//
// Rules that every backend keeps:
//   Order    All ranks of a group make the same collective calls in the same order. With the
//            checked decorator (backends/checked, on by default) any difference (operation, reduce
//            operation, root, dtype, sizes, layout, label, call site) is CommError{kMismatch} on
//            all ranks, before any data moves. Never a silent result.
//   Memory   Buffers are borrowed until the call's Work is done, and do not overlap, except that
//            in and out may be the very same range where a method says so. Buffers must be dense
//            (any dimension order); a view with holes is refused with ConfigError (SEMANTICS D3).
//   Failure  A call completes on every live rank, or throws CommError of the same kind on every
//            live rank. No wait inside it outlasts its timeout; the process never aborts. After a
//            CommError the group is unusable: every later call throws the same kind. Two
//            exceptions: a split() that fails while it connects the new group leaves the old one
//            usable; and a mismatch of a send and its recv is kMismatch on these two ranks,
//            kPeerLost on others.
//   Threads  One ProcessGroup belongs to one rank. Calls come from one task at a time.
//   Async    Each method returns at once; the result is there when Work::wait() returns. Calls on
//            one group run one by one in the order they were made, whatever other groups do. Calls
//            on device memory run in the device's queues (work.h says what then holds): later calls
//            need not wait for them to end, and a failure may be found after wait() has returned.
//            It is told by the next call and by Work::error().
//   Bits     All ranks hold the same bytes after all_reduce, where the capability says so.
//
// Errors common to all methods, thrown by the call itself, before anything is sent:
//   ConfigError            root or peer outside the group, sizes that do not fit, holes in a view,
//                          memory that is not the device's
//   CommError{kUnsupported} capabilities() excludes the call
// Errors that come from Work::wait():
//   CommError{kTimeout, kPeerLost, kMismatch, kAborted, kDeadlock}; the text names this rank, the
//   backend, the call, what happened and what to do; culprits() are ranks of this group, but for
//   VerdictError.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/buffer.h"
#include "backends/api/call.h"
#include "backends/api/capabilities.h"
#include "backends/api/error.h"
#include "backends/api/work.h"

namespace ddproof {

// Per-call settings. The call site is filled in by default.
struct CallOptions {
  // Which tensor or bucket this is ("bucket 3"); part of the fingerprint that ranks compare.
  std::string label;
  // Zero: the group's default.
  Duration timeout = Duration::zero();
};

class ProcessGroup {
 public:
  static constexpr std::uint32_t kTagMax = 0x7fffffff;  // the others are for decorators

  virtual ~ProcessGroup() = default;

  // 0 <= rank() < size(); both constant for life.
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Empty for the world; of a part "1.0" (the first split, color 0), of its parts "1.0/2.1". The
  // same on all ranks of the group.
  const std::string& name() const { return name_; }
  Duration default_timeout() const { return default_timeout_; }
  virtual std::string_view backend_name() const = 0;
  virtual const Capabilities& capabilities() const = 0;

  // data := reduction over all ranks of data. Requires: same count and type on all ranks.
  WorkPtr all_reduce(Buffer data, ReduceOp op = ReduceOp::kSum, const CallOptions& options = {},
                     CallSite site = CallSite::current());
  // data := root's data.
  WorkPtr broadcast(Buffer data, int root, const CallOptions& options = {},
                    CallSite site = CallSite::current());
  // On root, data := reduction over all ranks; the data of other ranks stays untouched.
  WorkPtr reduce(Buffer data, int root, ReduceOp op = ReduceOp::kSum,
                 const CallOptions& options = {}, CallSite site = CallSite::current());
  // out := the inputs of ranks 0, 1, ... one after another. Requires: out.count = size * in.count.
  WorkPtr all_gather(ConstBuffer in, Buffer out, const CallOptions& options = {},
                     CallSite site = CallSite::current());
  // out := part rank() of the reduction of in. Requires: in.count = size * out.count.
  WorkPtr reduce_scatter(ConstBuffer in, Buffer out, ReduceOp op = ReduceOp::kSum,
                         const CallOptions& options = {}, CallSite site = CallSite::current());
  // On root, out := the inputs of ranks 0, 1, ...; other ranks pass an empty out.
  WorkPtr gather(ConstBuffer in, Buffer out, int root, const CallOptions& options = {},
                 CallSite site = CallSite::current());
  // out := part rank() of root's in; other ranks pass an empty in.
  WorkPtr scatter(ConstBuffer in, Buffer out, int root, const CallOptions& options = {},
                  CallSite site = CallSite::current());
  // Part p of out := part rank() of rank p's in, in `size` equal parts.
  WorkPtr all_to_all(ConstBuffer in, Buffer out, const CallOptions& options = {},
                     CallSite site = CallSite::current());
  // Point to point. A send pairs with the recv of the same tag, in order per (pair, tag).
  // Requires: peer != rank(); tag <= kTagMax; same count and type on both sides.
  WorkPtr send(ConstBuffer data, int peer, std::uint32_t tag = 0, const CallOptions& options = {},
               CallSite site = CallSite::current());
  WorkPtr recv(Buffer data, int peer, std::uint32_t tag = 0, const CallOptions& options = {},
               CallSite site = CallSite::current());
  // Done only after every rank has made the call. What a rank wrote before it entered is visible to
  // every rank after it is done.
  WorkPtr barrier(const CallOptions& options = {}, CallSite site = CallSite::current());
  // A barrier that says who did not come: on timeout rank 0's error lists the missing ranks, the
  // first one, or all of them with `wait_all_ranks`; the others learn the same list.
  WorkPtr monitored_barrier(bool wait_all_ranks = false, const CallOptions& options = {},
                            CallSite site = CallSite::current());

  // The calls that `calls` makes on this group are submitted together once it returns, for a
  // backend to make one of them that ends as a whole (NCCL: one group); others run one after
  // another, so sends and receives are to be in an order that allows it. Each of the calls returns
  // its Work as ever, which may be waited for once coalesce() has returned. Requires: no barrier,
  // no split and no coalesce() inside; buffers are all in device memory or none (ConfigError). When
  // `calls` throws, that comes out and none of them is made.
  void coalesce(const std::function<void()>& calls);

  // Divides the group: ranks with one color form a group, ordered by (key, rank). A negative color
  // joins none and gets null. A collective call, synchronous. The new group must not outlive this.
  virtual std::unique_ptr<ProcessGroup> split(int color, int key,
                                              CallSite site = CallSite::current()) = 0;

  // Fails all pending and later calls of this rank with CommError{kAborted} and closes its
  // connections, so that peers get CommError{kPeerLost} at once. Returns as soon as the backend's
  // store, if it has one, has taken the news; when it does not answer, after half a second.
  // Idempotent.
  virtual void abort() = 0;

  // Notes, in the caller's task, what has to be known at the time of a call on device memory: for
  // decorators, not for users. Throws ConfigError.
  virtual void prepare(Call& call) { (void)call; }

  // Executes a call that was checked already: for decorators, not for users. By reference, because
  // a Call takes half a kilobyte of a rank's stack.
  virtual WorkPtr submit(Call&& call) = 0;

  // "rank 1/4 [gloo]", the start of every message.
  std::string who() const;

 protected:
  ProcessGroup(int rank, int size, Duration default_timeout, std::string name = {});
  // The name of the part with this color that the next split() makes. Called once for each.
  std::string name_next_part(int color);

 private:
  struct Coalesced;
  WorkPtr check_and_submit(Call&& call, const CallOptions& options, CallSite site);
  void require_fitting(const Call& call) const;

  int rank_;
  int size_;
  Duration default_timeout_;
  std::string name_;
  int split_count_ = 0;
  std::uint64_t collective_count_ = 0;
  std::uint64_t point_to_point_count_ = 0;
  std::vector<Coalesced>* coalesced_ = nullptr;  // within coalesce(): its calls
};

}  // namespace ddproof
