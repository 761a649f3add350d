// What models with batch norm are put together from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/model/conv2d.h"
#include "reference/model/sequential.h"
#include "reference/model/sync_batch_norm.h"

namespace ddproof::internal {

template <class T>
using Layers = std::vector<std::unique_ptr<Module<T>>>;

template <class T>
struct Builder {
  Device<T>& device;
  std::uint64_t seed;
  ProcessGroup* statistics;  // whose ranks share the statistics of batch norm; null: none

  // Without a bias, which batch norm would take away again.
  void convolution(Layers<T>& layers, const std::string& name, Conv2dOptions options) const {
    options.bias = false;
    layers.push_back(std::make_unique<Conv2d<T>>(device, name, options, seed));
  }

  void batch_norm(Layers<T>& layers, const std::string& name, std::int64_t channels) const {
    const BatchNormOptions options = {.channels = channels};
    if (statistics != nullptr) {
      layers.push_back(std::make_unique<SyncBatchNorm<T>>(device, name, options, *statistics));
    } else {
      layers.push_back(std::make_unique<BatchNorm<T>>(device, name, options));
    }
  }
};

}  // namespace ddproof::internal
