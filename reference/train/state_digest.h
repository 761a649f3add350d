// Digests of what training changes: equal digests mean equal bits. For comparing ranks, runs and
// backends.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/api/digest.h"
#include "reference/optim/sgd.h"

namespace ddproof {

template <class T>
std::uint64_t digest_of(const Tensor<T>& tensor, std::uint64_t seed) {
  const std::vector<T> host = to_host(tensor);
  return digest_of(std::as_bytes(std::span(host)), seed);
}

template <class T>
std::uint64_t parameter_digest(const std::vector<Parameter<T>*>& parameters) {
  std::uint64_t digest = 0;
  for (const Parameter<T>* parameter : parameters) digest = digest_of(parameter->value, digest);
  return digest;
}

// Parameters and momentum.
template <class T>
std::uint64_t state_digest(const Sgd<T>& sgd) {
  std::uint64_t digest = parameter_digest(sgd.parameters());
  for (std::size_t i = 0; i < sgd.parameters().size(); ++i) {
    if (sgd.momentum_buffer(i)) digest = digest_of(*sgd.momentum_buffer(i), digest);
  }
  return digest;
}

}  // namespace ddproof
