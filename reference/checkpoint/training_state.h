// Everything that training needs to go on exactly where it stopped, as the bytes of one file.
//
// The file is safetensors: parameters by name, momentum as "optimizer.momentum_buffer.NAME", the
// rest as metadata. A checksum over the whole file (XXH3, with its own digits as zeros) stands in
// the metadata, so any changed bit is found, in the header too. Shapes are the model's own, so a
// state may be restored at another world size.
//
// restore_state() changes nothing unless everything fits. Values; one task at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "backends/api/element.h"
#include "reference/checkpoint/safetensors.h"
#include "reference/optim/sgd.h"

namespace ddproof {

struct TrainingProgress {
  std::int64_t step = 0;  // updates done; the next one is number step+1
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // in the epoch, over all ranks: DistributedSampler's position
  std::uint64_t seed = 0;
  std::string data;  // what it was trained on, in words that differ for other data
  // Reducer::gradient_order(): what the bits of sums over ranks depend on. Empty: not known yet.
  std::vector<std::size_t> gradient_order;

  bool operator==(const TrainingProgress&) const = default;
};

// The progress of a complete state; throws DataError as verify_state().
TrainingProgress read_progress(const Safetensors& file);

// Decodes and checks: format, checksum, progress. Throws DataError naming `path`.
Safetensors verify_state(const std::string& path, std::vector<std::byte> bytes);

namespace internal {

struct NamedTensor {
  std::string name;
  std::string dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

inline std::string momentum_name(const std::string& parameter) {
  return "optimizer.momentum_buffer." + parameter;
}

std::vector<std::byte> encode_state(const TrainingProgress& progress,
                                    const std::vector<NamedTensor>& tensors);

// Throws DataError unless `order` is empty or holds each of 0 to parameters-1 once.
void check_gradient_order(const std::string& path, const std::vector<std::size_t>& order,
                          std::size_t parameters);

// The tensor of that name, or null. Throws DataError when dtype or shape differ.
const TensorView* find_checked(const Safetensors& file, const std::string& name,
                               const std::string& dtype, const Shape& shape);

// Throws DataError: the file lacks a parameter, or has a tensor that the model does not.
void check_names(const Safetensors& file, const std::vector<std::string>& parameters);

template <class T>
NamedTensor to_host(std::string name, const Tensor<T>& tensor) {
  NamedTensor host{std::move(name), safetensors_dtype(element_of<T>().dtype()), tensor.shape(), {}};
  host.bytes.resize(static_cast<std::size_t>(tensor.count()) * sizeof(T));
  tensor.device().copy_to_host(reinterpret_cast<T*>(host.bytes.data()), tensor.data(),
                               tensor.count());
  return host;
}

template <class T>
void from_host(const TensorView& view, Tensor<T>& tensor) {
  // Copied first: the file's bytes need not be aligned for T.
  std::vector<T> host(static_cast<std::size_t>(tensor.count()));
  if (!host.empty()) std::memcpy(host.data(), view.bytes.data(), view.bytes.size());
  tensor.device().copy_from_host(tensor.data(), host.data(), tensor.count());
}

}  // namespace internal

// The bytes of the file. Throws ConfigError when two parameters have one name, or T is no NCCL
// dtype.
template <class T>
std::vector<std::byte> encode_state(const TrainingProgress& progress, const Sgd<T>& sgd) {
  std::vector<internal::NamedTensor> tensors;
  for (std::size_t i = 0; i < sgd.parameters().size(); ++i) {
    const Parameter<T>& parameter = *sgd.parameters()[i];
    tensors.push_back(internal::to_host(parameter.name, parameter.value));
    if (sgd.momentum_buffer(i)) {
      tensors.push_back(
          internal::to_host(internal::momentum_name(parameter.name), *sgd.momentum_buffer(i)));
    }
  }
  return internal::encode_state(progress, tensors);
}

// Sets the parameters' values, the momentum and returns the progress. `path` is for error texts.
// Throws DataError when verify_state() does, or the names, shapes or dtypes are not the model's.
template <class T>
TrainingProgress restore_state(const std::string& path, std::vector<std::byte> bytes, Sgd<T>& sgd) {
  const Safetensors file = verify_state(path, std::move(bytes));
  const std::string dtype = safetensors_dtype(element_of<T>().dtype());
  std::vector<std::string> names;
  std::vector<const TensorView*> values;
  std::vector<const TensorView*> momenta;
  for (const Parameter<T>* parameter : sgd.parameters()) {
    names.push_back(parameter->name);
    const Shape& shape = parameter->value.shape();
    values.push_back(internal::find_checked(file, parameter->name, dtype, shape));
    momenta.push_back(
        internal::find_checked(file, internal::momentum_name(parameter->name), dtype, shape));
  }
  internal::check_names(file, names);
  TrainingProgress progress = read_progress(file);
  internal::check_gradient_order(path, progress.gradient_order, names.size());
  sgd.clear_momentum_buffers();
  for (std::size_t i = 0; i < names.size(); ++i) {
    internal::from_host(*values[i], sgd.parameters()[i]->value);
    if (momenta[i] != nullptr) internal::from_host(*momenta[i], sgd.make_momentum_buffer(i));
  }
  return progress;
}

}  // namespace ddproof
