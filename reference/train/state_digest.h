// Digests of what training changes: equal digests mean equal bits. For comparing ranks, runs and
// backends.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/api/digest.h"
#include "reference/optim/optimizer.h"

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

// Parameters, the optimizer's state, and the model's buffers.
template <class T>
std::uint64_t state_digest(const Optimizer<T>& optimizer,
                           const std::vector<ModuleBuffer<T>*>& buffers = {}) {
  std::uint64_t digest = parameter_digest(optimizer.parameters());
  for (const ParameterState<T>& state : optimizer.state()) {
    for (const Tensor<T>& tensor : state.tensors) digest = digest_of(tensor, digest);
    if (state.updates == 0) continue;
    digest = digest_of(std::as_bytes(std::span(&state.updates, 1)), digest);
  }
  for (const ModuleBuffer<T>* buffer : buffers) digest = digest_of(buffer->value, digest);
  return digest;
}

}  // namespace ddproof
