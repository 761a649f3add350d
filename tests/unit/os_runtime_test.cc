#include "backends/local/os_runtime.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "backends/api/error.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;

TEST(OsRuntime, ClockGoesForwardAndWallClockIsAfter2020) {
  OsRuntime runtime;
  const TimePoint first = runtime.now();
  runtime.sleep_for(milliseconds(2));
  EXPECT_GE(runtime.now() - first, milliseconds(2));
  EXPECT_GT(runtime.wall_clock(), std::chrono::hours(24 * 365 * 50));
}

TEST(OsRuntime, SameSeedGivesTheSameStreamAndAnotherSeedAnother) {
  OsRuntime a(7), b(7), c(8);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t drawn = a.random_u64();
    EXPECT_EQ(drawn, b.random_u64());
    EXPECT_NE(drawn, c.random_u64());
  }
}

TEST(OsRuntime, JoinRethrowsWhatTheTaskThrewWhateverItsType) {
  OsRuntime runtime;
  const auto standard = runtime.spawn("standard", [] { throw std::out_of_range("there"); });
  EXPECT_THROW(standard->join(), std::out_of_range);
  const auto number = runtime.spawn("number", [] { throw 42; });
  EXPECT_THROW(number->join(), int);
  const auto fine = runtime.spawn("a name of more than 15 characters", [] {});
  EXPECT_NO_THROW(fine->join());
}

TEST(OsRuntimeDeathTest, DestroyingARunningTaskAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        OsRuntime runtime;
        runtime.spawn("lost", [] {});
      },
      "check failed");
}

TEST(OsRuntime, WritingToAClosedConnectionInATaskIsAnErrorNotADeath) {
  OsRuntime runtime;
  const auto task = runtime.spawn("writer", [] {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ::close(ends[0]);
    EXPECT_EQ(::write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
    ::close(ends[1]);
  });
  task->join();
}

TEST(OsRuntime, MonitorWakesAWaiterInAnotherTask) {
  OsRuntime runtime;
  const auto monitor = runtime.make_monitor();
  bool ready = false;
  const auto task = runtime.spawn("notifier", [&] {
    MonitorLock lock(*monitor);
    ready = true;
    monitor->notify_all();
  });
  {
    MonitorLock lock(*monitor);
    while (!ready) EXPECT_TRUE(monitor->wait(kForever, {"a notification", CallSite{}, {}}));
  }
  task->join();
}

TEST(OsRuntime, MonitorWaitEndsAtItsDeadline) {
  OsRuntime runtime;
  const auto monitor = runtime.make_monitor();
  MonitorLock lock(*monitor);
  const TimePoint deadline = runtime.now() + milliseconds(5);
  while (monitor->wait(deadline, {"nothing", CallSite{}, {}})) {
  }
  EXPECT_GE(runtime.now(), deadline);
}

TEST(OsRuntime, EnvironmentIsACopyMadeAtConstruction) {
  ::setenv("DDPROOF_TEST_A", "before", 1);
  ::setenv("DDPROOF_TEST_EMPTY", "", 1);
  ::unsetenv("DDPROOF_TEST_UNSET");
  OsRuntime runtime;
  ::setenv("DDPROOF_TEST_A", "after", 1);
  const Environment& environment = runtime.environment();
  EXPECT_EQ(environment.get("DDPROOF_TEST_A"), "before");
  EXPECT_EQ(environment.get("DDPROOF_TEST_EMPTY"), "");
  EXPECT_EQ(environment.get("DDPROOF_TEST_UNSET"), std::nullopt);
  const auto all = environment.all();
  EXPECT_TRUE(std::ranges::is_sorted(all));
  EXPECT_TRUE(std::ranges::binary_search(all, std::string("DDPROOF_TEST_A=before")));
}

}  // namespace
}  // namespace ddproof
