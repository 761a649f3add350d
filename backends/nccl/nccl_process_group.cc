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
      queue_(runtime, "nccl calls", *this, [this](const Call& call) { execute(call); }) {}

NcclProcessGroup::~NcclProcessGroup() {
  // Nobody will wait for the pending calls any more, and their peers may be gone.
  if (std::uncaught_exceptions() > uncaught_at_start_) leave("an exception ended its work");
}

WorkPtr NcclProcessGroup::submit(Call&& call) { return queue_.submit(std::move(call)); }

void NcclProcessGroup::execute(const Call& call) {
  const std::optional<Finding> finding = link_->run(call);
  if (!finding) return;
  if (aborted_) {
    throw comm_error(*this, call, aborted_here());
  }
  throw comm_error(*this, call, *finding);
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
