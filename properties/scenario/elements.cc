#include "properties/scenario/elements.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "backends/api/visit_dtype.h"

namespace ddproof::scenario {
namespace {

constexpr double kExactMax = 0x1p53;

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
  return visit_dtype(dtype, [value](auto zero) {
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
  visit_dtype(data.type().dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* elements = static_cast<T*>(data.data());
    for (std::int64_t i = 0; i < data.count(); ++i)
      elements[i] = from_double<T>(value_at(values, i));
  });
}

double element_at(ConstBuffer data, std::int64_t index) {
  return visit_dtype(data.type().dtype(), [&](auto zero) {
    return to_double(static_cast<const decltype(zero)*>(data.data())[index]);
  });
}

std::optional<std::string> difference(ConstBuffer data, const std::vector<double>& values) {
  return visit_dtype(data.type().dtype(), [&](auto zero) -> std::optional<std::string> {
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
