#include "properties/scenario/elements.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "backends/api/check.h"

namespace ddproof::scenario {
namespace {

constexpr double kExactMax = 0x1p53;

// Calls `body` with a value of the C++ type.
template <class Body>
auto with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kInt8: return body(std::int8_t{});
    case DType::kUint8: return body(std::uint8_t{});
    case DType::kInt32: return body(std::int32_t{});
    case DType::kUint32: return body(std::uint32_t{});
    case DType::kInt64: return body(std::int64_t{});
    case DType::kUint64: return body(std::uint64_t{});
    case DType::kFloat16: return body(Float16{});
    case DType::kBFloat16: return body(BFloat16{});
    case DType::kFloat32: return body(float{});
    case DType::kFloat64: return body(double{});
    case DType::kCustom: break;
  }
  DDPROOF_CHECK(false);
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

double value_at(const std::vector<double>& values, std::int64_t i) {
  return values[static_cast<std::size_t>(i) % values.size()];
}

}  // namespace

bool holds(DType dtype, double value) {
  return with_type(dtype, [value](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      return std::isfinite(value) && std::trunc(value) == value && std::fabs(value) <= kExactMax &&
             value >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
             value <= static_cast<double>(std::numeric_limits<T>::max());
    } else {
      return true;
    }
  });
}

void fill(Buffer data, const std::vector<double>& values) {
  with_type(data.type().dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* elements = static_cast<T*>(data.data());
    for (std::int64_t i = 0; i < data.count(); ++i)
      elements[i] = from_double<T>(value_at(values, i));
  });
}

double element_at(ConstBuffer data, std::int64_t index) {
  return with_type(data.type().dtype(), [&](auto zero) {
    return to_double(static_cast<const decltype(zero)*>(data.data())[index]);
  });
}

std::optional<std::string> difference(ConstBuffer data, const std::vector<double>& values) {
  return with_type(data.type().dtype(), [&](auto zero) -> std::optional<std::string> {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < data.count(); ++i) {
      const double is = element_at(data, i);
      const double expected = to_double(from_double<T>(value_at(values, i)));
      if (is == expected || (std::isnan(is) && std::isnan(expected))) continue;
      return fmt::format("element {} is {}, expected {}", i, is, expected);
    }
    return std::nullopt;
  });
}

}  // namespace ddproof::scenario
