// A CUDA device of the stand-in for tests of reference/compute/cuda, and the same work on any
// device.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/sim/sim_world.h"
#include "reference/compute/cuda/cuda.h"
#include "reference/compute/tensor.h"
#include "tests/nccl/standin_world.h"

namespace ddproof {

// `body` on rank 0 of a machine with two devices; what it throws comes out. Returns what the
// stand-in complained about.
inline std::vector<std::string> complaints_on_cuda(const std::function<void()>& body,
                                                   std::uint64_t seed = 1,
                                                   standin::MachineOptions options = {}) {
  options.devices = 2;
  const StandinReport report = run_on_machine(1, options, seed, [&](int) { body(); });
  rethrow(report.run);
  return report.complaints;
}

// As above; a complaint is a test failure.
inline void on_cuda(const std::function<void()>& body, std::uint64_t seed = 1) {
  EXPECT_EQ(complaints_on_cuda(body, seed), std::vector<std::string>{}) << "seed " << seed;
}

template <class T>
Tensor<T> to_device(Device<T>& device, const std::vector<T>& values) {
  Tensor<T> tensor(device, {static_cast<std::int64_t>(values.size())});
  device.copy_from_host(tensor.data(), values.data(), tensor.count());
  return tensor;
}

// Payloads of NaNs may differ.
template <class T>
bool have_same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return true;
}

}  // namespace ddproof
