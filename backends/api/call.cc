#include "backends/api/call.h"

#include <string_view>

namespace ddproof {
namespace {

std::string_view base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// In the in-place operations, input and output are the same.
ConstBuffer buffer_shown(const Call& call) {
  return call.op == Op::kScatter || call.op == Op::kRecv ? ConstBuffer(call.output) : call.input;
}

}  // namespace

const char* to_string(Op op) {
  switch (op) {
    case Op::kAllReduce: return "all_reduce";
    case Op::kBroadcast: return "broadcast";
    case Op::kReduce: return "reduce";
    case Op::kAllGather: return "all_gather";
    case Op::kReduceScatter: return "reduce_scatter";
    case Op::kGather: return "gather";
    case Op::kScatter: return "scatter";
    case Op::kAllToAll: return "all_to_all";
    case Op::kSend: return "send";
    case Op::kRecv: return "recv";
    case Op::kBarrier: return "barrier";
    case Op::kMonitoredBarrier: return "monitored_barrier";
  }
  return "unknown";
}

const char* to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return "sum";
    case ReduceOp::kAverage: return "average";
    case ReduceOp::kMin: return "min";
    case ReduceOp::kMax: return "max";
    case ReduceOp::kProduct: return "product";
  }
  return "unknown";
}

std::string Call::describe() const {
  if (on_behalf_of) return on_behalf_of->describe();
  std::string details;
  const auto add = [&details](std::string_view detail, std::string_view more = {}) {
    if (!details.empty()) details += ", ";
    details.append(detail).append(more);
  };
  if (reduces(op)) add(to_string(reduce_op));
  if (op != Op::kBarrier && op != Op::kMonitoredBarrier) {
    const ConstBuffer shown = buffer_shown(*this);
    add(shown.type().name());
    details.append(" [").append(shown.layout().describe()).append("]");
  }
  if (wait_all_ranks) add("wait all ranks");
  if (root >= 0) add("root ", std::to_string(root));
  if (peer >= 0) add(op == Op::kSend ? "to " : "from ", std::to_string(peer));
  if (is_point_to_point(op)) add("tag ", std::to_string(tag));
  if (!group.empty()) add("group ", group);
  if (!label.empty()) add(label);
  std::string text = to_string(op);
  text.append(" #").append(std::to_string(sequence));
  if (!details.empty()) text.append(" (").append(details).append(")");
  text.append(" at ").append(base_name(site.file)).append(":").append(std::to_string(site.line));
  return text;
}

std::string_view Call::fingerprint_in(std::string_view description) const {
  if (on_behalf_of) return on_behalf_of->fingerprint_in(description);
  return site.is_line_compared ? description : description.substr(0, description.rfind(':'));
}

}  // namespace ddproof
