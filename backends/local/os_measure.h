// For benchmarks: the CPU time of this process, and what repeated measurements come to.
#pragma once

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

namespace ddproof {

inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Summary {
  double median, min, max;
};

// Requires: at least one value.
inline Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

// How often per CPU second `run(0)`, `run(1)`, ... `run(count - 1)` go, over `rounds` rounds.
template <class Run>
Summary measure_rate(int rounds, int count, Run&& run) {
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    const double start = cpu_seconds();
    for (int i = 0; i < count; ++i) run(i);
    rates.push_back(count / (cpu_seconds() - start));
  }
  return summarize(std::move(rates));
}

}  // namespace ddproof
