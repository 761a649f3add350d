// For benchmarks: the CPU time and the memory of this process, and what repeated measurements come
// to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace ddproof {

inline double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A number of kilobytes of Linux's /proc/self/status, in bytes; 0 where there is none.
inline std::int64_t process_status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::int64_t kilobytes = 0;
  for (std::string word; status >> word;) {
    if (word == key && status >> kilobytes) break;
  }
  return 1024 * kilobytes;
}

// Bytes of physical memory that this process has now, and that it had at most since
// forget_peak_memory() or its start.
inline std::int64_t resident_memory() { return process_status_bytes("VmRSS:"); }
inline std::int64_t peak_memory() { return process_status_bytes("VmHWM:"); }
inline void forget_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

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
