// What one element of a buffer is: an NCCL dtype, or a caller-defined type with its own sum.
//
// Caller-defined elements exist on CPU backends only (Capabilities::custom_elements); they carry an
// exact field or a value with its error bound through the real collectives. Values, immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "backends/api/half.h"

namespace ddproof {

enum class DType : std::uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kCustom,
};

// A caller-defined element: trivially copyable, with an associative and commutative sum.
// One static object per type; compared by name and size.
struct CustomElement {
  std::string_view name;
  std::size_t size = 0;
  // accumulator[i] += addend[i] for i < count. The two ranges do not overlap.
  void (*sum)(void* accumulator, const void* addend, std::size_t count) = nullptr;
};

class ElementType {
 public:
  constexpr ElementType() = default;
  // Requires: dtype is not kCustom.
  constexpr ElementType(DType dtype) : dtype_(dtype) {}  // NOLINT(google-explicit-constructor)
  // Requires: `custom` outlives every use; static storage in practice.
  constexpr explicit ElementType(const CustomElement* custom)
      : dtype_(DType::kCustom), custom_(custom) {}

  constexpr DType dtype() const { return dtype_; }
  // Null unless dtype() is kCustom.
  constexpr const CustomElement* custom() const { return custom_; }
  std::size_t size() const;
  // "float32", "bfloat16", or the caller's name.
  std::string_view name() const;

  friend bool operator==(ElementType a, ElementType b) {
    return a.dtype_ == b.dtype_ && a.size() == b.size() && a.name() == b.name();
  }

 private:
  DType dtype_ = DType::kUint8;
  const CustomElement* custom_ = nullptr;
};

// A type is its own caller-defined element when it names itself and can be added.
template <class T>
concept NamedAddend = std::is_trivially_copyable_v<T> && requires(T a, T b) {
  { T::kElementName } -> std::convertible_to<std::string_view>;
  a = a + b;
};

namespace internal {

template <NamedAddend T>
void sum_elements(void* accumulator, const void* addend, std::size_t count) {
  auto* to = static_cast<T*>(accumulator);
  const auto* from = static_cast<const T*>(addend);
  for (std::size_t i = 0; i < count; ++i) to[i] = to[i] + from[i];
}

template <NamedAddend T>
inline constexpr CustomElement kCustomElementOf{T::kElementName, sizeof(T), &sum_elements<T>};

}  // namespace internal

// The element type of a C++ type: element_of<float>() is float32. A type that is neither an NCCL
// dtype nor a NamedAddend does not compile.
template <class T>
constexpr ElementType element_of() {
  if constexpr (std::is_same_v<T, std::int8_t>)
    return DType::kInt8;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return DType::kUint8;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DType::kInt32;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return DType::kUint32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return DType::kInt64;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return DType::kUint64;
  else if constexpr (std::is_same_v<T, Float16>)
    return DType::kFloat16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::kBFloat16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::kFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kFloat64;
  else {
    static_assert(NamedAddend<T>, "not an NCCL dtype: give it kElementName and operator+");
    return ElementType(&internal::kCustomElementOf<T>);
  }
}

}  // namespace ddproof
