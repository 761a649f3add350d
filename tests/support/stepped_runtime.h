// The operating system's Runtime, but with a clock that stands still until the test moves it.
#pragma once

#include "backends/local/os_runtime.h"

namespace ddproof {

class SteppedRuntime final : public Runtime {
 public:
  void advance(Duration duration) { now_ += duration; }

  TimePoint now() const override { return now_; }
  Duration wall_clock() const override { return os_.wall_clock(); }
  void sleep_for(Duration duration) override { os_.sleep_for(duration); }
  void charge(Duration compute_cost) override { os_.charge(compute_cost); }
  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override {
    return os_.spawn(std::move(name), std::move(body));
  }
  std::unique_ptr<Monitor> make_monitor() override { return os_.make_monitor(); }
  std::uint64_t random_u64() override { return os_.random_u64(); }
  FileSystem& files() override { return os_.files(); }
  const Environment& environment() const override { return os_.environment(); }

 private:
  OsRuntime os_;
  TimePoint now_ = os_.now();
};

}  // namespace ddproof
