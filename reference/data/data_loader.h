// Batches on a device: what a training loop iterates over.
//
//   DataLoader<float> loader(runtime, device, dataset, sampler.indices(), {.batch_size = 64});
//   while (const Batch<float>* batch = loader.next()) { ... }
//
// Invariants, thread rules and errors: batch_reader.h. The task that reads ahead never touches the
// device.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "reference/compute/scalar.h"
#include "reference/compute/tensor.h"
#include "reference/data/batch_reader.h"

namespace ddproof {

// What each rank gets of a global batch.
// Throws ConfigError when the sizes are not positive or do not divide: ranks would get no samples,
// or uneven batches.
std::int64_t local_batch_size(std::int64_t global_batch_size, int world_size);

template <class T>
struct Batch {
  Tensor<T> input;                   // the batch first, then the sample's shape
  std::vector<std::int64_t> labels;  // on the host; one a sample, or one a pixel
  std::int64_t size() const { return input.shape().empty() ? 0 : input.size(0); }  // samples
};

template <class T>
class DataLoader {
 public:
  // Requires: the references outlive the loader. Throws as BatchReader's constructor.
  DataLoader(Runtime& runtime, Device<T>& device, const Dataset& dataset, IndexList indices,
             const DataLoaderOptions& options)
      : device_(device),
        sample_shape_(dataset.sample_shape()),
        reader_(runtime, dataset, std::move(indices), options) {}
  // The same for a stream, such as a rank's ShardedStream.
  DataLoader(Runtime& runtime, Device<T>& device, SampleStream& stream,
             const DataLoaderOptions& options)
      : device_(device), sample_shape_(stream.sample_shape()), reader_(runtime, stream, options) {}

  // Requires: the length is known, as a data set's always is.
  std::int64_t batch_count() const { return reader_.batch_count(); }

  // The next batch, or null at the end. It belongs to the loader and is valid until the next call.
  // The last one may be short (see DataLoaderOptions::drop_last). Throws what reading threw.
  const Batch<T>* next() {
    if (!reader_.next(host_)) return nullptr;
    if (batch_.size() != host_.size) {
      Shape shape{host_.size};
      shape.insert(shape.end(), sample_shape_.begin(), sample_shape_.end());
      batch_.input = Tensor<T>(device_, std::move(shape));
    }
    batch_.labels = host_.labels;
    device_.copy_from_host(batch_.input.data(), host_values(), batch_.input.count());
    return &batch_;
  }

 private:
  const T* host_values() {
    if constexpr (std::is_same_v<T, float>) {
      return host_.values.data();
    } else {
      converted_.resize(host_.values.size());
      for (std::size_t i = 0; i < converted_.size(); ++i) {
        converted_[i] = from_real<T>(host_.values[i]);
      }
      return converted_.data();
    }
  }

  Device<T>& device_;
  Shape sample_shape_;
  BatchReader reader_;
  HostBatch host_;
  std::vector<T> converted_;  // unused for float
  Batch<T> batch_;
};

}  // namespace ddproof
