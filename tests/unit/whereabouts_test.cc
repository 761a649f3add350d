// Where the ranks are that others miss: what a timeout says of them, and calls on different groups.
#include "backends/membership/whereabouts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"

namespace ddproof {
namespace {

TEST(Whereabouts, AreToldAsTheyAre) {
  OsRuntime runtime;
  Whereabouts where(runtime);
  EXPECT_TRUE(read_whereabouts(where.told()).empty());

  Call barrier;
  barrier.label = "two\nlines";
  barrier.sequence = 7;
  Call compared;
  compared.on_behalf_of = std::make_shared<const Call>(barrier);
  const StoreGroup world{"gloo/1", 0, {0, 1, 2}};
  const StoreGroup part{"gloo/1/1.0", 1, {2, 0}};
  where.enter(world, compared);
  where.enter(part, barrier);
  const std::vector<Whereabout> told = read_whereabouts(where.told());
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].prefix, "gloo/1");
  EXPECT_TRUE(told[0].compares);
  EXPECT_EQ(told[0].call, barrier.describe());
  EXPECT_EQ(told[1].world_ranks, (std::vector{2, 0}));
  EXPECT_FALSE(told[1].compares);

  where.leave(world);
  EXPECT_EQ(read_whereabouts(where.told()).size(), 1u);
  EXPECT_TRUE(read_whereabouts("gloo/1 1 2 0").empty()) << "cut off";
}

TEST(Whereabouts, CallsCrossWhereEachMissesRanksOfTheOther) {
  const StoreGroup group{"a", 0, {4, 5, 6}};  // ranks 1 and 2, so 5 and 6 of the world, are missing
  const auto other = [](const std::string& prefix, std::vector<int> ranks, bool compares = true) {
    return std::vector{Whereabout{prefix, std::move(ranks), compares, "barrier"}};
  };
  const auto crosses = [&](const WhereRanksAre& where) {
    return find_crossed_call(group, {1, 2}, where).has_value();
  };
  const auto both = other("b", {4, 5, 6});
  EXPECT_TRUE(crosses({{1, both}, {2, both}}));

  EXPECT_FALSE(crosses({{1, both}})) << "rank 2 does not say";
  EXPECT_FALSE(crosses({{1, both}, {2, {}}})) << "rank 2 is in no call";
  EXPECT_FALSE(crosses({{1, both}, {2, other("c", {4, 6})}})) << "not the same call";
  const auto data = other("b", {4, 5, 6}, false);
  EXPECT_FALSE(crosses({{1, data}, {2, data}})) << "all have come to it already";
  const auto alone = other("b", {5, 6});
  EXPECT_FALSE(crosses({{1, alone}, {2, alone}})) << "all are there, it will end";
  const auto wider = other("b", {4, 5, 6, 7});
  EXPECT_FALSE(crosses({{1, wider}, {2, wider}})) << "nobody knows where rank 7 is";
  auto twice = both;
  twice.push_back(other("c", {4, 5}).front());
  EXPECT_FALSE(crosses({{1, both}, {2, twice}})) << "rank 2 may come out of the other one";
}

CommError comm_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error;
  }
  return {CommErrorKind::kUnsupported, "no error"};
}

// A world of so many ranks over TCP, whose calls are compared, with two groups of all of them.
class Gloo : public testing::Test {
 protected:
  struct Groups {
    RankContext& world;
    std::unique_ptr<ProcessGroup> first, second;
  };
  // Long enough for all ranks to come to their calls.
  static CallOptions until_timeout() { return {.timeout = std::chrono::seconds(2)}; }
  static void run(int ranks, const std::function<void(Groups&)>& body) {
    make_backend("gloo")->run_world({.world_size = ranks}, [&](RankContext& rank) {
      Groups groups{rank, rank.group.split(0, 0), rank.group.split(0, 0)};
      body(groups);
    });
  }
};

TEST_F(Gloo, ACallOnAnotherGroupIsAMismatchOnAllRanks) {
  std::atomic<int> failed = 0;
  run(3, [&](Groups& groups) {
    const bool is_odd = groups.world.group.rank() == 2;
    ProcessGroup& group = is_odd ? *groups.second : *groups.first;
    // The other two tell rank 2, whose own call has time.
    const CallOptions options =
        is_odd ? CallOptions{.timeout = std::chrono::seconds(20)} : until_timeout();
    const CommError error = comm_error_of([&] {
      group.barrier(options, {"t.cc", is_odd ? 9 : 8, ""})->wait();
    });
    EXPECT_EQ(error.kind(), CommErrorKind::kMismatch) << error.what();
    EXPECT_EQ(error.culprits(), std::vector{2}) << error.what();
    for (const char* part :
         {"the ranks call on different groups: of the world, ",
          "ranks 0, 1 are in barrier #1 (group 1.0) at t.cc:8",
          "rank 2 is in barrier #1 (group 2.0) at t.cc:9", "rank 2 differs from the majority",
          "make all ranks call the same, in the same order"}) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    ++failed;
    while (failed < 3) groups.world.runtime.sleep_for(std::chrono::milliseconds(1));
  });
}

TEST_F(Gloo, OppositeOrdersAreAMismatchWithoutAMajority) {
  std::atomic<int> failed = 0;
  run(2, [&](Groups& groups) {
    ProcessGroup& group = groups.world.group.rank() == 0 ? *groups.first : *groups.second;
    const CommError error = comm_error_of([&] { group.barrier(until_timeout())->wait(); });
    EXPECT_EQ(error.kind(), CommErrorKind::kMismatch) << error.what();
    EXPECT_TRUE(error.culprits().empty()) << error.what();
    EXPECT_EQ(std::string(error.what()).find("majority"), std::string::npos) << error.what();
    ++failed;
    while (failed < 2) groups.world.runtime.sleep_for(std::chrono::milliseconds(1));
  });
}

TEST_F(Gloo, ATimeoutSaysWhereTheMissingRanksAre) {
  std::atomic<int> failed = 0;
  run(3, [&](Groups& groups) {
    RankContext& world = groups.world;
    WorkPtr receive;
    float number = 0;
    if (world.group.rank() == 1) {
      receive = groups.second->recv(Buffer::of(std::span(&number, 1)), 2, 5, {}, {"t.cc", 7, ""});
    }
    if (world.group.rank() == 0) {
      const CommError error =
          comm_error_of([&] { groups.first->barrier(until_timeout())->wait(); });
      EXPECT_EQ(error.kind(), CommErrorKind::kTimeout) << error.what();
      EXPECT_EQ(error.culprits(), (std::vector{1, 2})) << error.what();
      for (const char* part :
           {"ranks 1, 2 did not come; rank 1 is in recv #1 (float32 [1], from 2, tag 5, ",
            " at t.cc:7; rank 2 is in no call; "}) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      }
      ++failed;
    }
    while (failed < 1) world.runtime.sleep_for(std::chrono::milliseconds(1));
    if (world.group.rank() == 2)
      groups.second->send(Buffer::of(std::span(&number, 1)), 1, 5)->wait();
    if (receive) receive->wait();
    if (world.group.rank() != 0) comm_error_of([&] { groups.first->barrier()->wait(); });
  });
}

}  // namespace
}  // namespace ddproof
