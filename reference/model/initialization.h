// Initial parameter values, a pure function of (seed, parameter name, element index): the same on
// every rank, device and compiler, in whatever order parameters are made.
//
// Distribution: PyTorch's defaults for Linear and Conv2d, uniform in [-b, b) with
// b = 1/sqrt(fan-in) for weights (kaiming_uniform_ with a = sqrt(5)) and biases alike. The random
// bits are SplitMix64's (Steele, Lea, Flood, OOPSLA 2014), so the values are not PyTorch's own.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/compute/scalar.h"
#include "reference/compute/tensor.h"

namespace ddproof {

namespace internal {

constexpr std::uint64_t split_mix(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
  return state ^ (state >> 31);
}

// FNV-1a.
constexpr std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace internal

// Element `index` of the stream: a multiple of 2^-23 in [-1, 1), exact in float.
constexpr double uniform_value(std::uint64_t seed, std::string_view name, std::int64_t index) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
  const std::uint64_t key = internal::split_mix(seed * kGolden + internal::hash_name(name));
  const std::uint64_t bits =
      internal::split_mix(key + (static_cast<std::uint64_t>(index) + 1) * kGolden);
  return static_cast<double>(static_cast<std::int64_t>(bits >> 40) - (1 << 23)) * 0x1p-23;
}

// Fills with uniform values in [-1/sqrt(fan_in), 1/sqrt(fan_in)), each rounded once from double.
// Requires: fan_in > 0.
template <class T>
void initialize_uniform(Tensor<T>& tensor, std::uint64_t seed, std::string_view name,
                        std::int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  std::vector<T> values(static_cast<std::size_t>(tensor.count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = from_real<T>(bound * uniform_value(seed, name, static_cast<std::int64_t>(i)));
  }
  tensor.device().copy_from_host(tensor.data(), values.data(), tensor.count());
}

}  // namespace ddproof
