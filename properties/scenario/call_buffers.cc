#include "properties/scenario/call_buffers.h"

#include <algorithm>
#include <string_view>

#include "backends/api/check.h"
#include "backends/api/digest.h"
#include "backends/api/error.h"
#include "properties/scenario/elements.h"

namespace ddproof::scenario {
namespace {

struct Sizes {
  std::int64_t input = 0;
  std::int64_t output = 0;
};

Sizes sizes_of(const CallStep& call, bool is_root, int world_size) {
  const std::int64_t one = call.count;
  const std::int64_t all = call.count * world_size;
  switch (call.op) {
    case Op::kAllReduce:
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kSend: return {reach(call.layout), 0};
    case Op::kRecv: return {0, reach(call.layout)};
    case Op::kAllGather: return {one, all};
    case Op::kReduceScatter: return {all, one};
    case Op::kGather: return {one, is_root ? all : 0};
    case Op::kScatter: return {is_root ? all : 0, one};
    case Op::kAllToAll: return {all, all};
    case Op::kBarrier:
    case Op::kMonitoredBarrier: return {};
  }
  DDPROOF_CHECK(false);
}

}  // namespace

std::int64_t reach(const Layout& layout) {
  if (layout.count() == 0) return 0;
  std::int64_t end = 1;
  for (std::size_t i = 0; i < layout.sizes().size(); ++i) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(layout.sizes()[i] - 1, layout.strides()[i], &step) ||
        __builtin_add_overflow(end, step, &end)) {
      throw ConfigError("it reaches over more than 2^63 - 1 elements");
    }
  }
  return end;
}

bool has_root(Op op) {
  return op == Op::kBroadcast || op == Op::kReduce || op == Op::kGather || op == Op::kScatter;
}

bool has_values(const CallStep& call, PayloadMode payload, int ranks) {
  // The smaller buffer of a rank: all_to_all's are both of the group's size.
  const std::int64_t count = call.op == Op::kAllToAll ? call.count * ranks : call.count;
  const std::size_t bytes = static_cast<std::size_t>(count) * ElementType(call.dtype).size();
  return payload == PayloadMode::kReal || bytes <= kSteeringBytes;
}

CallBuffers::CallBuffers(const CallStep& call, int rank, const Scenario& scenario)
    : call_(call),
      is_root_(rank == call.root),
      root_(has_root(call.op) ? scenario.rank_in_group(call, call.root) : 0),
      peer_(is_point_to_point(call.op) ? scenario.rank_in_group(call, call.peer) : 0) {
  const int ranks = scenario.size_of(call);
  const Sizes sizes = sizes_of(call, is_root_, ranks);
  const std::size_t width = ElementType(call.dtype).size();
  input_ = CallMemory(static_cast<std::size_t>(sizes.input) * width);
  output_ = CallMemory(static_cast<std::size_t>(sizes.output) * width);
  if (scenario.payload == PayloadMode::kSizeOnly && !has_values(call, scenario.payload, ranks)) {
    return;
  }
  const std::vector<double> own{static_cast<double>(rank + 1)};
  fill(dense(input_), call.value.empty() ? own : call.value);
}

Buffer CallBuffers::dense(const CallMemory& memory) const {
  const auto count = static_cast<std::int64_t>(memory.size() / ElementType(call_.dtype).size());
  return Buffer(memory.data(), call_.dtype, Layout(count));
}

Buffer CallBuffers::shaped(const CallMemory& memory) const {
  return Buffer(memory.data(), call_.dtype, call_.layout);
}

WorkPtr CallBuffers::submit(ProcessGroup& group, CallSite site) {
  const CallOptions options{.label = call_.label, .timeout = call_.timeout};
  const int root = root_;
  const ReduceOp op = call_.reduce;
  switch (call_.op) {
    case Op::kAllReduce: return group.all_reduce(shaped(input_), op, options, site);
    case Op::kBroadcast: return group.broadcast(shaped(input_), root, options, site);
    case Op::kReduce: return group.reduce(shaped(input_), root, op, options, site);
    case Op::kAllGather: return group.all_gather(dense(input_), dense(output_), options, site);
    case Op::kReduceScatter:
      return group.reduce_scatter(dense(input_), dense(output_), op, options, site);
    case Op::kGather: return group.gather(dense(input_), dense(output_), root, options, site);
    case Op::kScatter: return group.scatter(dense(input_), dense(output_), root, options, site);
    case Op::kAllToAll: return group.all_to_all(dense(input_), dense(output_), options, site);
    case Op::kSend: return group.send(shaped(input_), peer_, call_.tag, options, site);
    case Op::kRecv: return group.recv(shaped(output_), peer_, call_.tag, options, site);
    case Op::kBarrier: return group.barrier(options, site);
    case Op::kMonitoredBarrier: return group.monitored_barrier(call_.wait_all_ranks, options, site);
  }
  DDPROOF_CHECK(false);
}

ConstBuffer CallBuffers::result() const {
  const bool in_place =
      call_.op == Op::kAllReduce || call_.op == Op::kBroadcast || call_.op == Op::kReduce;
  const CallMemory& memory = in_place ? input_ : output_;
  if (call_.op == Op::kReduce && !is_root_) return {};
  const auto count = static_cast<std::int64_t>(memory.size() / ElementType(call_.dtype).size());
  return ConstBuffer(memory.data(), call_.dtype, Layout(count));
}

std::optional<std::uint64_t> CallBuffers::replica_digest(const Scenario& scenario) const {
  const bool is_replicated =
      call_.op == Op::kAllReduce || call_.op == Op::kBroadcast || call_.op == Op::kAllGather;
  const bool has_values_here = has_values(call_, scenario.payload, scenario.size_of(call_));
  if (!is_replicated || (!has_values_here && scenario.payload == PayloadMode::kSizeOnly))
    return std::nullopt;
  const ConstBuffer data = result();
  const std::size_t bytes = has_values_here ? data.bytes() : std::min<std::size_t>(8, data.bytes());
  return digest_of(std::string_view(static_cast<const char*>(data.data()), bytes));
}

}  // namespace ddproof::scenario
