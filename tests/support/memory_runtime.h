// The operating system's Runtime, but with files in memory.
#pragma once

#include "backends/local/os_runtime.h"
#include "tests/support/memory_files.h"

namespace ddproof {

class MemoryRuntime final : public Runtime {
 public:
  TimePoint now() const override { return os_.now(); }
  Duration wall_clock() const override { return os_.wall_clock(); }
  void sleep_for(Duration duration) override { os_.sleep_for(duration); }
  void charge(Duration compute_cost) override { os_.charge(compute_cost); }
  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override {
    return os_.spawn(std::move(name), std::move(body));
  }
  std::unique_ptr<Monitor> make_monitor() override { return os_.make_monitor(); }
  std::uint64_t random_u64() override { return os_.random_u64(); }
  MemoryFiles& files() override { return files_; }
  const Environment& environment() const override { return os_.environment(); }

 private:
  OsRuntime os_;
  MemoryFiles files_;
};

}  // namespace ddproof
