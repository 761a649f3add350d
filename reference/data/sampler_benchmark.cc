// The index lists of 10 million samples on 8 ranks, all of them in one process and one rank's
// alone, beside PyTorch's DistributedSampler in Debian's python3-torch where that is installed.
// Prints the medians, their ratios and the memory taken.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "backends/api/check.h"
#include "reference/data/distributed_sampler.h"

namespace ddproof {
namespace {

constexpr std::int64_t kLength = 10'000'000;
constexpr int kReplicas = 8;
constexpr int kRuns = 3;

// Makes the lists of the ranks of argv[1] in each of 3 epochs. Prints one CPU time in seconds a
// line, then the checksum of the last epoch.
constexpr const char* kPyTorch = R"(
import sys, time, torch
from torch.utils.data import DistributedSampler
torch.set_num_threads(1)
ranks = [int(rank) for rank in sys.argv[1].split(",")]
samplers = [DistributedSampler(range(10_000_000), num_replicas=8, rank=rank) for rank in ranks]
for epoch in range(3):
    seconds = 0
    checksum = 0
    for sampler in samplers:
        sampler.set_epoch(epoch)
        start = time.process_time()
        indices = list(sampler)
        seconds += time.process_time() - start
        checksum += (sampler.rank + 1) * sum(indices)
    print(seconds)
print(checksum)
)";

struct Result {
  std::vector<double> seconds;
  std::int64_t checksum = 0;  // of the last run
};

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

using Draw = std::function<std::vector<IndexList>(DistributedSampler&)>;

// `first_rank` is that of the first list.
Result measure_ours(const Draw& draw, int first_rank) {
  Result result;
  DistributedSampler sampler({.length = kLength, .replicas = kReplicas, .rank = first_rank});
  for (int run = 0; run < kRuns; ++run) {
    sampler.set_epoch(run);
    const double start = cpu_seconds();
    const std::vector<IndexList> lists = draw(sampler);
    result.seconds.push_back(cpu_seconds() - start);
    result.checksum = 0;
    int weight = first_rank + 1;
    for (const IndexList& list : lists) {
      for (std::int64_t i = 0; i < list.size(); ++i) result.checksum += weight * list[i];
      ++weight;
    }
  }
  return result;
}

// No times when Debian's Python has no torch.
Result measure_pytorch(const std::string& ranks) {
  const std::string command =
      fmt::format("/usr/bin/python3 -c '{}' {} 2>/dev/null", kPyTorch, ranks);
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
  fmt::print("  {:<20} {:9.1f} ms (min {:.1f}, max {:.1f}, {} runs)\n", name, median * 1e3,
             seconds.front() * 1e3, seconds.back() * 1e3, seconds.size());
  return median;
}

// False when PyTorch's lists are others.
bool compare(const char* what, const Draw& draw, int first_rank, const std::string& ranks) {
  fmt::print("{}: {} samples, {} ranks, shuffled; CPU time\n", what, kLength, kReplicas);
  const double before = peak_bytes();
  const Result ours = measure_ours(draw, first_rank);
  const double bytes = (peak_bytes() - before) / static_cast<double>(kLength);
  const double our_median = print_median("ddproof", ours.seconds);
  fmt::print("  peak memory beyond that of before: {:.1f} bytes a sample\n", bytes);
  const Result pytorch = measure_pytorch(ranks);
  if (pytorch.seconds.empty()) {
    fmt::print("  PyTorch: not measured, python3-torch is not installed\n");
    return true;
  }
  const double their_median = print_median("PyTorch, one thread", pytorch.seconds);
  const bool same = ours.checksum == pytorch.checksum;
  fmt::print("  ratio PyTorch / ddproof {:.1f}, same indices: {}\n", their_median / our_median,
             same ? "yes" : "NO");
  return same;
}

int run() {
  const bool all = compare(
      "all ranks' lists",
      [](DistributedSampler& sampler) { return sampler.indices_of_all_ranks(); }, 0,
      "0,1,2,3,4,5,6,7");
  const bool one = compare(
      "one rank's list",
      [](DistributedSampler& sampler) { return std::vector<IndexList>{sampler.indices()}; }, 3,
      "3");
  return all && one ? 0 : 1;
}

}  // namespace
}  // namespace ddproof

int main() { return ddproof::run(); }
