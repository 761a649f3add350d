#include "backends/nccl/wire_format.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/api/visit_dtype.h"

namespace ddproof::nccl {
namespace {

// A 16-bit float is one of float's values, and NCCL has no 16-bit integers.
template <class T>
using Value = std::conditional_t<std::is_same_v<T, double>, double, float>;
template <class T>
using Key = std::conditional_t<std::is_same_v<T, double>, std::int64_t, std::int32_t>;

// Flips the magnitude of negative numbers: then integers are ordered as the values. Its own
// inverse.
template <class K>
K reorder(K bits) {
  return bits < 0 ? bits ^ std::numeric_limits<K>::max() : bits;
}

template <class T, bool kWantLess>
void encode(void* wire, const void* elements, std::size_t count) {
  using Limits = std::numeric_limits<Key<T>>;
  auto* to = static_cast<Key<T>*>(wire);
  const auto* from = static_cast<const T*>(elements);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<Value<T>>(from[i]);
    to[i] = std::isnan(value) ? (kWantLess ? Limits::min() : Limits::max())
                              : reorder(std::bit_cast<Key<T>>(value));
  }
}

template <class T>
void decode(void* elements, const void* wire, std::size_t count) {
  auto* to = static_cast<T*>(elements);
  const auto* from = static_cast<const Key<T>*>(wire);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = std::bit_cast<Value<T>>(reorder(from[i]));
    to[i] = static_cast<T>(std::isnan(value) ? std::numeric_limits<Value<T>>::quiet_NaN() : value);
  }
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage: return ncclSum;
    case ReduceOp::kMin: return ncclMin;
    case ReduceOp::kMax: return ncclMax;
    case ReduceOp::kProduct: return ncclProd;
  }
  return ncclSum;
}

}  // namespace

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kInt8: return ncclInt8;
    case DType::kUint8: return ncclUint8;
    case DType::kInt32: return ncclInt32;
    case DType::kUint32: return ncclUint32;
    case DType::kInt64: return ncclInt64;
    case DType::kUint64: return ncclUint64;
    case DType::kFloat16: return ncclFloat16;
    case DType::kBFloat16: return ncclBfloat16;
    case DType::kFloat32: return ncclFloat32;
    case DType::kFloat64: return ncclFloat64;
    case DType::kCustom: break;
  }
  DDPROOF_CHECK(false);
}

WireFormat wire_format(DType dtype, ReduceOp op) {
  WireFormat format{nccl_type(dtype), nccl_op(op), ElementType(dtype).size()};
  if (op != ReduceOp::kMin && op != ReduceOp::kMax) return format;
  visit_dtype(dtype, [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) {
      format.type = sizeof(Key<T>) == 8 ? ncclInt64 : ncclInt32;
      format.element_bytes = sizeof(Key<T>);
      format.encode = op == ReduceOp::kMin ? &encode<T, true> : &encode<T, false>;
      format.decode = &decode<T>;
    }
  });
  return format;
}

}  // namespace ddproof::nccl
