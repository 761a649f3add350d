// A Gloo world within this process whose ranks cannot all be started.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/api/error.h"
#include "backends/gloo/tcp/gloo_backend.h"
#include "backends/store/memory_store.h"
#include "tests/support/few_tasks_runtime.h"

namespace ddproof {
namespace {

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
