#include "backends/api/capabilities.h"

#include <algorithm>

namespace ddproof {

bool Capabilities::supports(Op op) const {
  return std::ranges::any_of(ops, [op](const OpSupport& entry) { return entry.op == op; });
}

bool Capabilities::supports(const Call& call) const {
  if (!supports(call.op)) return false;
  const ElementType type = call.input.data() != nullptr ? call.input.type() : call.output.type();
  if (type.dtype() == DType::kCustom) {
    return custom_elements && (!reduces(call.op) || call.reduce_op == ReduceOp::kSum);
  }
  return std::ranges::count(dtypes, type.dtype()) > 0 &&
         (!reduces(call.op) || std::ranges::count(reduce_ops, call.reduce_op) > 0);
}

std::vector<DType> every_dtype() {
  return {DType::kInt8,   DType::kUint8,   DType::kInt32,    DType::kUint32,  DType::kInt64,
          DType::kUint64, DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
}

std::vector<ReduceOp> every_reduce_op() {
  return {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct};
}

}  // namespace ddproof
