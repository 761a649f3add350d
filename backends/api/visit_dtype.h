// From an NCCL dtype to the C++ type of its elements.
#pragma once

#include <cstdint>

#include "backends/api/check.h"
#include "backends/api/element.h"
#include "backends/api/half.h"

namespace ddproof {

// visitor(T{}), with T the type that holds an element. Requires: not DType::kCustom.
template <class Visitor>
auto visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::kInt8: return visitor(std::int8_t{});
    case DType::kUint8: return visitor(std::uint8_t{});
    case DType::kInt32: return visitor(std::int32_t{});
    case DType::kUint32: return visitor(std::uint32_t{});
    case DType::kInt64: return visitor(std::int64_t{});
    case DType::kUint64: return visitor(std::uint64_t{});
    case DType::kFloat16: return visitor(Float16{});
    case DType::kBFloat16: return visitor(BFloat16{});
    case DType::kFloat32: return visitor(float{});
    case DType::kFloat64: return visitor(double{});
    case DType::kCustom: break;
  }
  DDPROOF_CHECK(false);
}

}  // namespace ddproof
