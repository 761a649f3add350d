#include "backends/api/capabilities.h"

#include <algorithm>

namespace ddproof {

bool Capabilities::supports(Op op) const {
  return std::ranges::any_of(ops, [op](const OpSupport& entry) { return entry.op == op; });
}

bool Capabilities::supports(const Call& call) const {
  if (!supports(call.op)) return false;
  const bool reduces =
      call.op == Op::kAllReduce || call.op == Op::kReduce || call.op == Op::kReduceScatter;
  const ElementType type = call.input.data() != nullptr ? call.input.type() : call.output.type();
  if (type.dtype() == DType::kCustom) {
    return custom_elements && (!reduces || call.reduce_op == ReduceOp::kSum);
  }
  return std::ranges::count(dtypes, type.dtype()) > 0 &&
         (!reduces || std::ranges::count(reduce_ops, call.reduce_op) > 0);
}

}  // namespace ddproof
