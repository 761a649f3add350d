// A Gloo world within this process.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <memory>
#include <string>

#include "backends/api/error.h"
#include "backends/gloo/tcp/gloo_backend.h"
#include "backends/local/os_runtime.h"
#include "backends/store/memory_store.h"
#include "tests/support/few_tasks_runtime.h"

namespace ddproof {
namespace {

template <class MakeRuntime>
GlooBackend backend_over(MakeRuntime make_runtime) {
  return GlooBackend(ProcessHost{
      .make_runtime = make_runtime, .make_store = [](Runtime& owner) -> ProcessHost::Clients {
        auto server = std::make_shared<MemoryStoreServer>(owner);
        return [server](Runtime& rank) { return std::make_unique<MemoryStore>(server, rank); };
      }});
}

int count_threads(int policy) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (sched_getscheduler(std::stoi(entry.path().filename())) == policy) ++count;
  }
  return count;
}

// It is woken by the answer to a message whose sender may still hold its connection's lock.
TEST(GlooWorld, GloosOwnThreadAloneInterruptsNobody) {
  ASSERT_EQ(count_threads(SCHED_BATCH), 0);
  GlooBackend backend = backend_over([](std::uint64_t) { return std::make_unique<OsRuntime>(); });
  backend.run_world({.world_size = 2}, [](RankContext& rank) {
    rank.group.barrier()->wait();
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    EXPECT_EQ(count_threads(SCHED_BATCH), 1);
    rank.group.barrier()->wait();
  });
  EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
}

TEST(GlooWorld, ARankThatCannotBeStartedIsAResourceErrorAndEndsTheOthers) {
  GlooBackend backend =
      backend_over([](std::uint64_t) { return std::make_unique<FewTasksRuntime>(2); });
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
