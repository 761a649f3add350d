// One rank's index list of 10 million samples on 8 ranks, beside PyTorch's DistributedSampler in
// Debian's python3-torch where that is installed. Prints both medians and their ratio.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/api/check.h"
#include "reference/data/distributed_sampler.h"

namespace ddproof {
namespace {

constexpr std::int64_t kLength = 10'000'000;
constexpr int kReplicas = 8;
constexpr int kRuns = 5;

// Prints one time in seconds a line, then the sum of the indices.
constexpr const char* kPyTorch = R"(
import time, torch
from torch.utils.data import DistributedSampler
torch.set_num_threads(1)
sampler = DistributedSampler(range(10_000_000), num_replicas=8, rank=3)
for epoch in range(5):
    sampler.set_epoch(epoch)
    start = time.perf_counter()
    indices = list(sampler)
    print(time.perf_counter() - start)
    total = sum(indices)
print(total)
)";

struct Result {
  std::vector<double> seconds;
  std::int64_t checksum = 0;  // of the last run
};

Result measure_ours() {
  Result result;
  DistributedSampler sampler({.length = kLength, .replicas = kReplicas, .rank = 3});
  for (int run = 0; run < kRuns; ++run) {
    sampler.set_epoch(run);
    const auto start = std::chrono::steady_clock::now();
    const IndexList indices = sampler.indices();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    result.seconds.push_back(elapsed.count());
    result.checksum = 0;
    for (std::int64_t i = 0; i < indices.size(); ++i) result.checksum += indices[i];
  }
  return result;
}

// No times when Debian's Python has no torch.
Result measure_pytorch() {
  const std::string command = fmt::format("/usr/bin/python3 -c '{}' 2>/dev/null", kPyTorch);
  Result result;
  FILE* pipe = popen(command.c_str(), "r");
  DDPROOF_CHECK(pipe != nullptr);
  double value = 0;
  while (std::fscanf(pipe, "%lf", &value) == 1) result.seconds.push_back(value);
  pclose(pipe);
  if (result.seconds.empty()) return result;
  result.checksum = static_cast<std::int64_t>(result.seconds.back());
  result.seconds.pop_back();
  return result;
}

double print_median(const char* name, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  fmt::print("{:<22} {:8.1f} ms (min {:.1f}, max {:.1f}, {} runs)\n", name, median * 1e3,
             seconds.front() * 1e3, seconds.back() * 1e3, seconds.size());
  return median;
}

int run() {
  fmt::print("one rank's list: {} samples, {} ranks, shuffled\n", kLength, kReplicas);
  const Result ours = measure_ours();
  const double our_median = print_median("ddproof", ours.seconds);
  const Result pytorch = measure_pytorch();
  if (pytorch.seconds.empty()) {
    fmt::print("PyTorch: not measured, python3-torch is not installed\n");
    return 0;
  }
  const double their_median = print_median("PyTorch, one thread", pytorch.seconds);
  fmt::print("ratio PyTorch / ddproof {:8.1f}\n", their_median / our_median);
  fmt::print("same indices: {}\n", ours.checksum == pytorch.checksum ? "yes" : "NO");
  return ours.checksum == pytorch.checksum ? 0 : 1;
}

}  // namespace
}  // namespace ddproof

int main() { return ddproof::run(); }
