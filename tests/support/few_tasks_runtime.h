// The operating system's Runtime, but with a limit of tasks.
#pragma once

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"

namespace ddproof {

class FewTasksRuntime final : public Runtime {
 public:
  explicit FewTasksRuntime(int tasks_max) : tasks_left_(tasks_max) {}

  TimePoint now() const override { return os_.now(); }
  Duration wall_clock() const override { return os_.wall_clock(); }
  void sleep_for(Duration duration) override { os_.sleep_for(duration); }
  void charge(Duration compute_cost) override { os_.charge(compute_cost); }
  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override {
    if (tasks_left_-- == 0) throw ResourceError("task \"" + name + "\": no more threads");
    return os_.spawn(std::move(name), std::move(body));
  }
  std::unique_ptr<Monitor> make_monitor() override { return os_.make_monitor(); }
  std::uint64_t random_u64() override { return os_.random_u64(); }
  FileSystem& files() override { return os_.files(); }
  const Environment& environment() const override { return os_.environment(); }

 private:
  OsRuntime os_;
  int tasks_left_;
};

}  // namespace ddproof
