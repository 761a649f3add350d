// The operating system's Runtime, but with a limit of tasks.
#pragma once

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"

namespace ddproof {

class FewTasksRuntime final : public OsRuntime {
 public:
  explicit FewTasksRuntime(int tasks_max) : tasks_left_(tasks_max) {}

  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override {
    if (tasks_left_-- == 0) throw ResourceError("task \"" + name + "\": no more threads");
    return OsRuntime::spawn(std::move(name), std::move(body));
  }

 private:
  int tasks_left_;
};

}  // namespace ddproof
