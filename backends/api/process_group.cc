#include "backends/api/process_group.h"

#include <utility>

#include "backends/api/check.h"

namespace ddproof {
namespace {

class CallChecker {
 public:
  CallChecker(const ProcessGroup& group, const Call& call) : group_(group), call_(call) {}

  void check() const {
    check_ranks();
    check_dense(call_.input);
    check_dense(call_.output);
    check_sizes();
    if (!group_.capabilities().supports(call_)) {
      throw CommError(CommErrorKind::kUnsupported,
                      prefix() + "not supported by this backend; `ddproof backends` lists what is");
    }
    check_memory();
  }

 private:
  std::string prefix() const { return group_.who() + " " + call_.describe() + ": "; }

  [[noreturn]] void refuse(const std::string& what) const { throw ConfigError(prefix() + what); }

  void check_ranks() const {
    const std::string range = "allowed are 0 to " + std::to_string(group_.size() - 1);
    const bool rooted = call_.op == Op::kBroadcast || call_.op == Op::kReduce ||
                        call_.op == Op::kGather || call_.op == Op::kScatter;
    if (rooted && (call_.root < 0 || call_.root >= group_.size())) {
      refuse("root is " + std::to_string(call_.root) + ", " + range);
    }
    if (!is_point_to_point(call_.op)) return;
    if (call_.peer < 0 || call_.peer >= group_.size()) {
      refuse("peer is " + std::to_string(call_.peer) + ", " + range);
    }
    if (call_.peer == group_.rank()) refuse("a rank cannot send to or receive from itself");
    if (call_.tag > ProcessGroup::kTagMax) {
      refuse("tag is " + std::to_string(call_.tag) + ", allowed are 0 to " +
             std::to_string(ProcessGroup::kTagMax));
    }
  }

  void check_dense(const ConstBuffer& buffer) const {
    if (!buffer.layout().is_dense()) {
      refuse("the view has holes (" + buffer.layout().describe() +
             "); pack it into a dense buffer");
    }
    if (buffer.count() > 0 && buffer.data() == nullptr) refuse("the buffer is null");
  }

  void check_sizes() const {
    const bool at_root = call_.root == group_.rank();
    switch (call_.op) {
      case Op::kAllGather: require_parts(call_.output, call_.input); break;
      case Op::kReduceScatter: require_parts(call_.input, call_.output); break;
      case Op::kGather:
        if (at_root) require_parts(call_.output, call_.input);
        break;
      case Op::kScatter:
        if (at_root) require_parts(call_.input, call_.output);
        break;
      case Op::kAllToAll: require_equal_parts(); break;
      default: break;
    }
  }

  void check_memory() const {
    if (call_.input.count() > 0 && call_.output.count() > 0 &&
        call_.input.stream() != call_.output.stream()) {
      refuse("in and out are of two streams, or only one of them is in device memory; give both " +
             std::string("the stream that uses them"));
    }
    if (call_.stream() != nullptr && !group_.capabilities().device_buffers) {
      throw CommError(CommErrorKind::kUnsupported,
                      prefix() + "this backend takes no device memory; copy it to host memory");
    }
  }

  // whole.count must be size * part.count, of one type.
  void require_parts(const ConstBuffer& whole, const ConstBuffer& part) const {
    if (!(whole.type() == part.type())) {
      refuse("one buffer is " + std::string(whole.type().name()) + ", the other " +
             std::string(part.type().name()) + "; use one type");
    }
    std::int64_t expected = 0;
    if (__builtin_mul_overflow(part.count(), std::int64_t{group_.size()}, &expected) ||
        whole.count() != expected) {
      refuse("the larger buffer has " + std::to_string(whole.count()) + " elements, expected " +
             std::to_string(group_.size()) + " x " + std::to_string(part.count()));
    }
  }

  void require_equal_parts() const {
    if (!(call_.input.type() == call_.output.type()) ||
        call_.input.count() != call_.output.count() || call_.input.count() % group_.size() != 0) {
      refuse("in has " + std::to_string(call_.input.count()) + " elements, out " +
             std::to_string(call_.output.count()) + "; both must be equal, of one type, and a " +
             "multiple of " + std::to_string(group_.size()));
    }
  }

  const ProcessGroup& group_;
  const Call& call_;
};

}  // namespace

// The Work of a call within coalesce(), which is submitted when that ends.
class LaterWork final : public Work {
 public:
  explicit LaterWork(std::string what) : what_(std::move(what)) {}
  void begin(WorkPtr work) { work_ = std::move(work); }

  bool is_completed() override { return work_ && work_->is_completed(); }
  void wait(Duration timeout) override {
    if (!work_) {
      throw ConfigError(what_ + ": waited for within coalesce(), which has not submitted it; " +
                        "wait once coalesce() has returned");
    }
    work_->wait(timeout);
  }
  std::exception_ptr error() override { return work_ ? work_->error() : nullptr; }

 private:
  std::string what_;
  WorkPtr work_;
};

struct ProcessGroup::Coalesced {
  Call call;
  std::shared_ptr<LaterWork> work;
};

ProcessGroup::ProcessGroup(int rank, int size, Duration default_timeout, std::string name)
    : rank_(rank), size_(size), default_timeout_(default_timeout), name_(std::move(name)) {
  DDPROOF_CHECK(0 <= rank && rank < size);
}

std::string ProcessGroup::name_next_part(int color) {
  const std::string part = std::to_string(++split_count_) + "." + std::to_string(color);
  return name_.empty() ? part : name_ + "/" + part;
}

std::string ProcessGroup::who() const {
  return "rank " + std::to_string(rank_) + "/" + std::to_string(size_) + " [" +
         std::string(backend_name()) + "]";
}

WorkPtr ProcessGroup::check_and_submit(Call&& call, const CallOptions& options, CallSite site) {
  call.group = name_;
  call.label = options.label;
  call.timeout = options.timeout == Duration::zero() ? default_timeout_ : options.timeout;
  call.site = site;
  std::uint64_t& count = is_point_to_point(call.op) ? point_to_point_count_ : collective_count_;
  call.sequence = count + 1;
  CallChecker(*this, call).check();
  if (coalesced_ != nullptr) require_fitting(call);
  prepare(call);
  ++count;  // a refused call was never made
  if (coalesced_ == nullptr) return submit(std::move(call));
  const auto work = std::make_shared<LaterWork>(who() + " " + call.describe());
  coalesced_->push_back({std::move(call), work});
  return work;
}

void ProcessGroup::require_fitting(const Call& call) const {
  const std::string what = who() + " " + call.describe() + ": ";
  if (call.op == Op::kBarrier || call.op == Op::kMonitoredBarrier) {
    throw ConfigError(what + "a barrier within coalesce(); make it before or after");
  }
  const auto has_elements = [](const Call& c) { return c.input.count() + c.output.count() > 0; };
  for (const Coalesced& other : *coalesced_) {
    if (!has_elements(call) || !has_elements(other.call)) continue;
    if ((call.stream() == nullptr) == (other.call.stream() == nullptr)) continue;
    throw ConfigError(what + "coalesce() has calls on device memory and on host memory; make two");
  }
}

void ProcessGroup::coalesce(const std::function<void()>& calls) {
  if (coalesced_ != nullptr) throw ConfigError(who() + " coalesce within coalesce; make one of it");
  std::vector<Coalesced> made;
  const std::uint64_t collectives = collective_count_;
  const std::uint64_t messages = point_to_point_count_;
  coalesced_ = &made;
  try {
    calls();
  } catch (...) {
    coalesced_ = nullptr;
    collective_count_ = collectives;
    point_to_point_count_ = messages;
    throw;
  }
  coalesced_ = nullptr;
  for (Coalesced& each : made) {
    each.call.more_follow = &each != &made.back();
    each.work->begin(submit(std::move(each.call)));
  }
}

WorkPtr ProcessGroup::all_reduce(Buffer data, ReduceOp op, const CallOptions& options,
                                 CallSite site) {
  return check_and_submit({.op = Op::kAllReduce, .reduce_op = op, .input = data, .output = data},
                          options, site);
}

WorkPtr ProcessGroup::broadcast(Buffer data, int root, const CallOptions& options, CallSite site) {
  return check_and_submit({.op = Op::kBroadcast, .root = root, .input = data, .output = data},
                          options, site);
}

WorkPtr ProcessGroup::reduce(Buffer data, int root, ReduceOp op, const CallOptions& options,
                             CallSite site) {
  return check_and_submit(
      {.op = Op::kReduce, .reduce_op = op, .root = root, .input = data, .output = data}, options,
      site);
}

WorkPtr ProcessGroup::all_gather(ConstBuffer in, Buffer out, const CallOptions& options,
                                 CallSite site) {
  return check_and_submit({.op = Op::kAllGather, .input = in, .output = out}, options, site);
}

WorkPtr ProcessGroup::reduce_scatter(ConstBuffer in, Buffer out, ReduceOp op,
                                     const CallOptions& options, CallSite site) {
  return check_and_submit({.op = Op::kReduceScatter, .reduce_op = op, .input = in, .output = out},
                          options, site);
}

WorkPtr ProcessGroup::gather(ConstBuffer in, Buffer out, int root, const CallOptions& options,
                             CallSite site) {
  return check_and_submit({.op = Op::kGather, .root = root, .input = in, .output = out}, options,
                          site);
}

WorkPtr ProcessGroup::scatter(ConstBuffer in, Buffer out, int root, const CallOptions& options,
                              CallSite site) {
  return check_and_submit({.op = Op::kScatter, .root = root, .input = in, .output = out}, options,
                          site);
}

WorkPtr ProcessGroup::all_to_all(ConstBuffer in, Buffer out, const CallOptions& options,
                                 CallSite site) {
  return check_and_submit({.op = Op::kAllToAll, .input = in, .output = out}, options, site);
}

WorkPtr ProcessGroup::send(ConstBuffer data, int peer, std::uint32_t tag,
                           const CallOptions& options, CallSite site) {
  return check_and_submit({.op = Op::kSend, .peer = peer, .tag = tag, .input = data}, options,
                          site);
}

WorkPtr ProcessGroup::recv(Buffer data, int peer, std::uint32_t tag, const CallOptions& options,
                           CallSite site) {
  return check_and_submit({.op = Op::kRecv, .peer = peer, .tag = tag, .output = data}, options,
                          site);
}

WorkPtr ProcessGroup::barrier(const CallOptions& options, CallSite site) {
  return check_and_submit({.op = Op::kBarrier}, options, site);
}

WorkPtr ProcessGroup::monitored_barrier(bool wait_all_ranks, const CallOptions& options,
                                        CallSite site) {
  return check_and_submit({.op = Op::kMonitoredBarrier, .wait_all_ranks = wait_all_ranks}, options,
                          site);
}

}  // namespace ddproof
