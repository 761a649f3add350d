// One sum per gradient, in the order of compute/lane_sums.h, for what looks at all gradients.
// Stateless; one task at a time.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "reference/compute/lane_sums.h"
#include "reference/compute/tensor.h"
#include "reference/model/module.h"

namespace ddproof {

// Those that have a gradient.
template <class T>
std::vector<Parameter<T>*> with_gradient(const std::vector<Parameter<T>*>& parameters) {
  std::vector<Parameter<T>*> reached;
  std::ranges::copy_if(parameters, std::back_inserter(reached), &Parameter<T>::has_gradient);
  return reached;
}

// For each parameter the sum over its gradient; lanes are added in double. Waits for the device,
// once. Requires: all are on one device.
template <std::floating_point T>
std::vector<double> gradient_sums(LaneSum kind, const std::vector<Parameter<T>*>& parameters) {
  std::vector<double> sums(parameters.size());
  if (parameters.empty()) return sums;
  Device<T>& device = parameters[0]->gradient.device();
  Tensor<T> lanes(device, {static_cast<std::int64_t>(parameters.size()) * kSumLanes});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor<T>& gradient = parameters[i]->gradient;
    device.lane_sums(kind, gradient.data(), lanes.data() + static_cast<std::int64_t>(i) * kSumLanes,
                     gradient.count());
  }
  const std::vector<T> host = to_host(lanes);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto first = host.begin() + static_cast<std::ptrdiff_t>(i) * kSumLanes;
    for (auto lane = first; lane != first + kSumLanes; ++lane) sums[i] += *lane;
  }
  return sums;
}

}  // namespace ddproof
