// Everything that training needs to go on exactly where it stopped, as the bytes of one file.
//
// The file is safetensors: parameters and buffers by name, the optimizer's state as
// "optimizer.momentum_buffer.NAME" and so on (its number of updates as "optimizer.step.NAME"), the
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
#include <string_view>
#include <utility>
#include <vector>

#include "backends/api/element.h"
#include "reference/checkpoint/safetensors.h"
#include "reference/optim/optimizer.h"

namespace ddproof {

struct TrainingProgress {
  std::int64_t step = 0;  // updates done; the next one is number step+1
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // in the epoch, over all ranks: DistributedSampler's position
  std::uint64_t seed = 0;
  std::string data;  // what it was trained on, in words that differ for other data
  // In words that differ for schedules that differ; `step` means a place in it.
  std::string lr_schedule = "constant";
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

// "optimizer.momentum_buffer.fc1.weight".
inline std::string state_name(const std::string& tensor, const std::string& parameter) {
  return "optimizer." + tensor + "." + parameter;
}

// Of the number of updates of a parameter.
inline constexpr const char* kUpdates = "step";

// `optimizer`: its name.
std::vector<std::byte> encode_state(const TrainingProgress& progress, std::string_view optimizer,
                                    const std::vector<NamedTensor>& tensors);

NamedTensor encode_updates(const std::string& parameter, std::int64_t updates);

// The number that encode_updates() made of it. Requires: the file has it. Throws DataError when it
// is none or below 1.
std::int64_t read_updates(const Safetensors& file, const std::string& parameter);

// Throws DataError when the file's optimizer is another one.
void check_optimizer(const Safetensors& file, std::string_view optimizer);

// Throws DataError unless `order` is empty or holds each of 0 to parameters-1 once.
void check_gradient_order(const std::string& path, const std::vector<std::size_t>& order,
                          std::size_t parameters);

// The tensor of that name, or null. Throws DataError when dtype or shape differ.
const TensorView* find_checked(const Safetensors& file, const std::string& name,
                               const std::string& dtype, const Shape& shape);

// Throws DataError: the file lacks a parameter or a buffer, or has a tensor that the model and its
// optimizer do not.
void check_names(const Safetensors& file, const std::vector<std::string>& parameters,
                 const std::vector<std::string>& buffers, const StateLayout& layout);

// The tensors of a parameter's state, in the layout's order; none when the file has none of them
// and no number of updates. Throws DataError when it has a part of them only.
std::vector<const TensorView*> find_state(const Safetensors& file, const StateLayout& layout,
                                          const std::string& parameter, const std::string& dtype,
                                          const Shape& shape);

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

// What the file holds of each parameter's state.
template <class T>
std::vector<std::vector<const TensorView*>> find_states(const Safetensors& file,
                                                        const Optimizer<T>& optimizer,
                                                        const std::string& dtype) {
  const StateLayout layout = optimizer.state_layout();
  std::vector<std::vector<const TensorView*>> states;
  for (const Parameter<T>* parameter : optimizer.parameters()) {
    states.push_back(find_state(file, layout, parameter->name, dtype, parameter->value.shape()));
  }
  return states;
}

}  // namespace internal

// The bytes of the file. `buffers`: the model's. Throws ConfigError when two tensors have one name,
// or T is no NCCL dtype.
template <class T>
std::vector<std::byte> encode_state(const TrainingProgress& progress, const Optimizer<T>& optimizer,
                                    const std::vector<ModuleBuffer<T>*>& buffers = {}) {
  const StateLayout layout = optimizer.state_layout();
  const std::vector<ParameterState<T>>& states = optimizer.state();
  std::vector<internal::NamedTensor> tensors;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Parameter<T>& parameter = *optimizer.parameters()[i];
    tensors.push_back(internal::to_host(parameter.name, parameter.value));
    for (std::size_t t = 0; t < states[i].tensors.size(); ++t) {
      tensors.push_back(internal::to_host(internal::state_name(layout.tensors[t], parameter.name),
                                          states[i].tensors[t]));
    }
    if (layout.counts_updates && states[i].updates > 0) {
      tensors.push_back(internal::encode_updates(parameter.name, states[i].updates));
    }
  }
  for (const ModuleBuffer<T>* buffer : buffers) {
    tensors.push_back(internal::to_host(buffer->name, buffer->value));
  }
  return internal::encode_state(progress, optimizer.name(), tensors);
}

// Sets the values of parameters and buffers and the optimizer's state, and returns the progress.
// `path` is for error texts.
// Throws DataError when verify_state() does, the optimizer is another one, or the names, shapes or
// dtypes are not the model's.
template <class T>
TrainingProgress restore_state(const std::string& path, std::vector<std::byte> bytes,
                               Optimizer<T>& optimizer,
                               const std::vector<ModuleBuffer<T>*>& buffers = {}) {
  const Safetensors file = verify_state(path, std::move(bytes));
  internal::check_optimizer(file, optimizer.name());
  const StateLayout layout = optimizer.state_layout();
  const std::string dtype = safetensors_dtype(element_of<T>().dtype());
  std::vector<std::string> names;
  std::vector<const TensorView*> values;
  for (const Parameter<T>* parameter : optimizer.parameters()) {
    names.push_back(parameter->name);
    values.push_back(
        internal::find_checked(file, parameter->name, dtype, parameter->value.shape()));
  }
  std::vector<std::string> buffer_names;
  std::vector<const TensorView*> buffer_values;
  for (const ModuleBuffer<T>* buffer : buffers) {
    buffer_names.push_back(buffer->name);
    buffer_values.push_back(
        internal::find_checked(file, buffer->name, dtype, buffer->value.shape()));
  }
  internal::check_names(file, names, buffer_names, layout);
  const auto found = internal::find_states(file, optimizer, dtype);
  TrainingProgress progress = read_progress(file);
  internal::check_gradient_order(path, progress.gradient_order, names.size());
  std::vector<ParameterState<T>> states(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (found[i].empty()) continue;
    const Tensor<T>& value = optimizer.parameters()[i]->value;
    for (const TensorView* view : found[i]) {
      internal::from_host(*view, states[i].tensors.emplace_back(value.device(), value.shape()));
    }
    if (layout.counts_updates) states[i].updates = internal::read_updates(file, names[i]);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    internal::from_host(*values[i], optimizer.parameters()[i]->value);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    internal::from_host(*buffer_values[i], buffers[i]->value);
  }
  optimizer.load_state(std::move(states));
  return progress;
}

}  // namespace ddproof
