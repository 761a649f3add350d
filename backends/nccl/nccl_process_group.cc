#include "backends/nccl/nccl_process_group.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "backends/membership/split.h"

namespace ddproof {

Capabilities nccl_capabilities() {
  constexpr std::string_view kMessages = "grouped ncclSend and ncclRecv";
  Capabilities result;
  result.ops = {{Op::kAllReduce, "ncclAllReduce; average: the sum, divided on the host"},
                {Op::kBroadcast, "ncclBroadcast"},
                {Op::kReduce, "ncclReduce; average: the sum, divided on the host"},
                {Op::kAllGather, "ncclAllGather"},
                {Op::kReduceScatter, "ncclReduceScatter; average: the sum, divided on the host"},
                {Op::kGather, kMessages},
                {Op::kScatter, kMessages},
                {Op::kAllToAll, kMessages},
                {Op::kSend, "ncclSend; tags are compared by the checked decorator only"},
                {Op::kRecv, "ncclRecv, in the order of the peer's sends"},
                {Op::kBarrier, "ncclAllReduce of one number"},
                {Op::kMonitoredBarrier, "a key of the store per rank, and a verdict back"}};
  result.dtypes = every_dtype();
  result.reduce_ops = every_reduce_op();
  result.device_buffers = true;
  result.same_bits_every_rank = true;
  return result;
}

NcclProcessGroup::NcclProcessGroup(std::unique_ptr<nccl::NcclLink> link, Runtime& runtime,
                                   Duration default_timeout,
                                   std::shared_ptr<const Capabilities> capabilities,
                                   std::string name)
    : ProcessGroup(link->group().rank, link->group().size(), default_timeout, std::move(name)),
      link_(std::move(link)),
      runtime_(runtime),
      capabilities_(std::move(capabilities)),
      uncaught_at_start_(std::uncaught_exceptions()),
      in_flight_(runtime, {.error_of = [this](const Call& call) { return failure_of(call); },
                           .end = [this] { link_->end_on_device(); }}),
      queue_(runtime, "nccl calls", *this,
             [this](std::span<const Call* const> calls) { return execute(calls); }) {}

NcclProcessGroup::~NcclProcessGroup() {
  // Nobody will wait for the pending calls any more, and their peers may be gone.
  if (std::uncaught_exceptions() > uncaught_at_start_) leave("an exception ended its work");
}

WorkPtr NcclProcessGroup::submit(Call&& call) { return queue_.submit(std::move(call)); }

void NcclProcessGroup::prepare(Call& call) {
  if (call.stream() == nullptr) return;
  const int device = link_->world().device;
  const auto require = [&](const char* which, const std::string& wrong) {
    if (!wrong.empty()) {
      throw ConfigError(who() + " " + call.describe() + ": the buffer \"" + which + "\": " + wrong);
    }
  };
  const auto stream = static_cast<cudaStream_t>(call.stream());
  try {
    const char* const first = call.input.count() > 0 ? "in" : "out";
    require(first, nccl::why_not_on(device, stream));
    if (call.input.count() > 0) require("in", nccl::why_not_on(device, call.input.data()));
    if (call.output.count() > 0) require("out", nccl::why_not_on(device, call.output.data()));
    nccl::use_device(device);
    const auto ready = std::make_shared<nccl::Event>();
    ready->record(stream);
    call.ready = ready;
  } catch (const nccl::LibraryError&) {
    std::rethrow_exception(failure_of(call));
  }
}

WorkPtr NcclProcessGroup::execute(std::span<const Call* const> calls) {
  const Call& first = *calls.front();
  try {
    if (first.op == Op::kMonitoredBarrier) {
      link_->monitored_barrier(first);
      return nullptr;
    }
    auto launch = link_->launch(calls);
    if (are_on_device(calls)) {
      return in_flight_.add(first, std::move(launch), link_->world().device);
    }
    launch->await();
    launch->deliver();
    return nullptr;
  } catch (...) {
    const std::exception_ptr error = failure_of(first);
    in_flight_.fail_all(std::current_exception());
    std::rethrow_exception(error);
  }
}

std::exception_ptr NcclProcessGroup::failure_of(const Call& call) {
  try {
    const Finding finding = link_->explain_failure(call.timeout);
    return std::make_exception_ptr(comm_error(*this, call, aborted_ ? aborted_here() : finding));
  } catch (...) {
    return std::current_exception();
  }
}

void NcclProcessGroup::abort() { leave("it called abort"); }

void NcclProcessGroup::leave(const std::string& why) {
  if (aborted_.exchange(true)) return;
  queue_.fail_all(std::make_exception_ptr(comm_error(*this, aborted_here())));
  link_->close();  // first: telling may take long, and nobody shall wait for it
  link_->publish(rank_is_lost(rank(), why));
}

std::unique_ptr<ProcessGroup> NcclProcessGroup::split(int color, int key, CallSite site) {
  const std::vector<int> members = gather_part(*this, color, key, site);
  const std::string part = name_next_part(color);
  if (color < 0) return nullptr;
  const int my_rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  auto link = nccl::NcclLink::connect(link_->world(), link_->group().part(part, members, my_rank),
                                      default_timeout());
  return std::make_unique<NcclProcessGroup>(std::move(link), runtime_, default_timeout(),
                                            capabilities_, part);
}

}  // namespace ddproof
