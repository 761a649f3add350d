// A Gloo world within this process whose ranks cannot all be started.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/api/error.h"
#include "backends/gloo/tcp/gloo_backend.h"
#include "backends/local/os_runtime.h"
#include "backends/store/memory_store.h"

namespace ddproof {
namespace {

// The operating system's Runtime with a limit of tasks.
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

TEST(GlooWorld, ARankThatCannotBeStartedIsAResourceErrorAndEndsTheOthers) {
  GlooBackend backend(ProcessHost{
      .make_runtime = [](std::uint64_t) { return std::make_unique<FewTasksRuntime>(2); },
      .make_store = [](Runtime& owner) -> ProcessHost::Clients {
        auto server = std::make_shared<MemoryStoreServer>(owner);
        return [server](Runtime& rank) { return std::make_unique<MemoryStore>(server, rank); };
      }});
  bool began = false;
  try {
    backend.run_world({.world_size = 4}, [&](RankContext&) { began = true; });
    FAIL() << "a world of 4 ran on 2 tasks";
  } catch (const ResourceError& error) {
    EXPECT_STREQ(error.what(), "task \"rank 2\": no more threads");
  }
  EXPECT_FALSE(began);
}

}  // namespace
}  // namespace ddproof
