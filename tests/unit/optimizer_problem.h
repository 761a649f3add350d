// One parameter on a CPU, for tests of optimizers, and values as their golden files write them.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "reference/compute/cpu.h"
#include "reference/model/module.h"
#include "tests/support/golden.h"

namespace ddproof {

template <class T>
struct Problem {
  explicit Problem(std::vector<T> start) {
    const Shape shape{static_cast<std::int64_t>(start.size())};
    parameter = {"w", Tensor<T>(device, shape), Tensor<T>(device, shape), true};
    std::copy(start.begin(), start.end(), parameter.value.data());
  }

  // The gradient of sum a/2 (w - b)^2, in the type itself.
  void set_gradient(std::span<const T> a, std::span<const T> b, T sign = T(1)) {
    const std::span<const T> w = parameter.value.span();
    for (std::size_t i = 0; i < w.size(); ++i) {
      parameter.gradient.span()[i] = sign * (a[i] * (w[i] - b[i]));
    }
  }

  Cpu<T> device;
  Parameter<T> parameter;
};

template <class T>
std::vector<T> values(std::span<const T> span) {
  return {span.begin(), span.end()};
}

template <class T>
std::vector<T> from_hex(const nlohmann::json& list) {
  std::vector<T> numbers;
  for (const nlohmann::json& text : list) numbers.push_back(static_cast<T>(hex_float(text)));
  return numbers;
}

}  // namespace ddproof
