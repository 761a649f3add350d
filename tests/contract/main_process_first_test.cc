// The download guard on every backend that this build has.
#include "reference/launch/main_process_first.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/registry/registry.h"

namespace ddproof {
namespace {

// Runs `body` on every rank of a world of 2 nodes with 2 ranks each (a world of one on `single`).
struct GuardWorld {
  explicit GuardWorld(std::string_view backend_name) : backend(make_backend(backend_name)) {
    options.world_size = backend_name == "single" ? 1 : 4;
    options.placement = place_in_blocks(options.world_size, 2);
    options.seed = 7;
    options.timeout = std::chrono::seconds(20);
  }
  void run(const std::function<void(GuardContext, int rank)>& body) {
    backend->run_world(options, [&](RankContext& rank) {
      body({&rank.group, rank.group.rank() % 2}, rank.group.rank());
    });
  }
  std::size_t size() const { return static_cast<std::size_t>(options.world_size); }

  std::unique_ptr<Backend> backend;
  WorldOptions options;
};

class MainProcessFirst : public testing::TestWithParam<std::string> {
 protected:
  GuardWorld world_{GetParam()};
};

// Ranks may be threads.
struct Trace {
  explicit Trace(std::size_t size) : worked(size), seen_by_use(size, 0) {}
  std::vector<std::atomic<int>> worked;
  std::vector<int> seen_by_use;  // how many had worked when this rank used the result

  int total() const {
    int sum = 0;
    for (const std::atomic<int>& times : worked) sum += times;
    return sum;
  }
};

TEST_P(MainProcessFirst, OncePerNodeBeforeAnyUse) {
  Trace trace(world_.size());
  world_.run([&](GuardContext context, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    trace.seen_by_use[at] = main_process_first(
        context, GuardScope::kNode, [&] { ++trace.worked[at]; }, [&] { return trace.total(); });
  });
  const int nodes = world_.size() == 1 ? 1 : 2;
  EXPECT_EQ(trace.total(), nodes);
  EXPECT_EQ(trace.worked[0], 1);
  EXPECT_EQ(trace.seen_by_use, std::vector<int>(world_.size(), nodes));
}

TEST_P(MainProcessFirst, OncePerWorldBeforeAnyUse) {
  Trace trace(world_.size());
  world_.run([&](GuardContext context, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    trace.seen_by_use[at] = main_process_first(
        context, GuardScope::kWorld, [&] { ++trace.worked[at]; }, [&] { return trace.total(); });
  });
  EXPECT_EQ(trace.worked[0], 1);
  EXPECT_EQ(trace.seen_by_use, std::vector<int>(world_.size(), 1));
}

TEST_P(MainProcessFirst, AFailureReachesEveryRankWithTypeAndText) {
  std::vector<std::string> texts(world_.size());
  std::vector<int> used(world_.size(), 0);
  const int worker = world_.size() == 1 ? 0 : 2;  // local rank 0 of the last node
  world_.run([&](GuardContext context, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    try {
      main_process_first(
          context, GuardScope::kNode,
          [&] {
            if (rank == worker) throw DataError("images.gz: offset 16: cut off");
          },
          [&] { used[at] = 1; });
    } catch (const DataError& error) {
      texts[at] = error.what();
    }
  });
  EXPECT_EQ(used, std::vector<int>(world_.size(), 0));
  for (int rank = 0; rank < static_cast<int>(world_.size()); ++rank) {
    const std::string others = "rank " + std::to_string(rank) + "/4 [" + GetParam() +
                               "] main_process_first: the work failed on rank 2: ";
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)],
              (rank == worker ? "" : others) + "images.gz: offset 16: cut off");
  }
}

TEST_P(MainProcessFirst, EveryTypeOfErrorKeepsItsType) {
  const std::vector<std::function<void()>> throws = {
      [] { throw ConfigError("c"); },      [] { throw CommError(CommErrorKind::kPeerLost, "p"); },
      [] { throw std::logic_error("l"); }, [] { throw 7; },
      [] { throw DataError(""); },         [] { throw ResourceError("r"); }};
  const std::vector<std::string> names = {"config c", "comm peer lost p", "other l", "unknown",
                                          "data ",    "resource r"};
  for (std::size_t i = 0; i < throws.size(); ++i) {
    std::vector<std::string> caught(world_.size());
    world_.run([&](GuardContext context, int rank) {
      std::string& name = caught[static_cast<std::size_t>(rank)];
      try {
        main_process_first(context, GuardScope::kWorld, throws[i], [] {});
      } catch (const ConfigError& error) {
        name = std::string("config ") + error.what();
      } catch (const ResourceError& error) {
        name = std::string("resource ") + error.what();
      } catch (const DataError& error) {
        name = std::string("data ") + error.what();
      } catch (const CommError& error) {
        name = std::string("comm ") + to_string(error.kind()) + " " + error.what();
      } catch (const std::exception& error) {
        name = std::string("other ") + error.what();
      } catch (...) {
        name = "unknown";
      }
    });
    EXPECT_EQ(caught[0], names[i]) << "the worker gets its own exception";
    const std::string type = names[i].substr(0, names[i].find(' '));
    for (std::size_t rank = 1; rank < world_.size(); ++rank) {
      EXPECT_EQ(caught[rank].substr(0, caught[rank].find(' ')), type == "unknown" ? "other" : type)
          << caught[rank];
    }
  }
}

TEST_P(MainProcessFirst, TheNextGuardWorksAfterAFailedOne) {
  std::vector<int> results(world_.size());
  world_.run([&](GuardContext context, int rank) {
    try {
      main_process_first(
          context, GuardScope::kWorld, [] { throw DataError("first try"); }, [] {});
    } catch (const DataError&) {
      results[static_cast<std::size_t>(rank)] = main_process_first(
          context, GuardScope::kWorld, [] {}, [] { return 5; });
    }
  });
  EXPECT_EQ(results, std::vector<int>(world_.size(), 5));
}

TEST_P(MainProcessFirst, ALostWorkerIsAnErrorOnTheOthers) {
  if (world_.size() == 1) GTEST_SKIP() << "there are no others";
  std::vector<int> lost(world_.size(), 0);
  world_.run([&](GuardContext context, int rank) {
    try {
      main_process_first(
          context, GuardScope::kWorld, [&] { context.group->abort(); }, [] {});
    } catch (const CommError&) {
      lost[static_cast<std::size_t>(rank)] = 1;
    }
  });
  EXPECT_EQ(lost, std::vector<int>(world_.size(), 1));
}

// What each rank is told when the ranks pass these local ranks.
std::vector<std::string> config_errors(GuardWorld& world, const std::vector<int>& local_ranks,
                                       GuardScope scope, int& used) {
  std::vector<std::string> texts(world.size());
  std::atomic<int> uses = 0;
  world.run([&](GuardContext context, int rank) {
    const auto at = static_cast<std::size_t>(rank);
    context.local_rank = local_ranks[at];
    try {
      main_process_first(
          context, scope, [] {}, [&] { ++uses; });
    } catch (const ConfigError& error) {
      texts[at] = error.what();
    }
  });
  used = uses;
  return texts;
}

TEST_P(MainProcessFirst, AWrongLocalRankIsRefusedOnEveryRank) {
  for (const GuardScope scope : {GuardScope::kNode, GuardScope::kWorld}) {
    for (const int wrong : {-2, -1, 2}) {
      if (world_.size() == 1 && wrong == -1) continue;  // not distributed, which is right
      const int who = world_.size() == 1 ? 0 : 1;
      std::vector<int> local_ranks = {0, 1, 0, 1};
      local_ranks[static_cast<std::size_t>(who)] = wrong;
      int used = 0;
      const auto texts = config_errors(world_, local_ranks, scope, used);
      EXPECT_EQ(used, 0);
      for (const std::string& text : texts) {
        EXPECT_NE(text.find("rank " + std::to_string(who) + " has local rank " +
                            std::to_string(wrong) + ", allowed: 0 to " + std::to_string(who) +
                            "; pass LOCAL_RANK, which counts from 0 on each node"),
                  text.npos)
            << text;
      }
    }
  }
}

TEST_P(MainProcessFirst, ANodeWithoutLocalRankZeroIsRefusedOnEveryRank) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank is local rank 0";
  for (const GuardScope scope : {GuardScope::kNode, GuardScope::kWorld}) {
    int used = 0;
    const auto texts = config_errors(world_, {0, 1, 1, 2}, scope, used);
    EXPECT_EQ(used, 0);
    for (std::size_t rank = 0; rank < world_.size(); ++rank) {
      EXPECT_EQ(texts[rank],
                "rank " + std::to_string(rank) + "/4 [" + GetParam() +
                    "] main_process_first: rank 2 has local rank 1, but its node has no local rank "
                    "0 before it; pass LOCAL_RANK, which counts from 0 on each node");
    }
  }
}

TEST_P(MainProcessFirst, RanksMayBeDealtToNodesInAnyWay) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank has one node";
  for (const std::vector<int>& local_ranks :
       {std::vector{0, 0, 1, 1}, std::vector{0, 1, 0, 2}, std::vector{0, 0, 0, 0}}) {
    int used = 0;
    const auto texts = config_errors(world_, local_ranks, GuardScope::kNode, used);
    EXPECT_EQ(texts, std::vector<std::string>(4));
    EXPECT_EQ(used, 4);
  }
}

// PITFALLS P21: the others wait with the group's timeout.
TEST_P(MainProcessFirst, WorkLongerThanTheTimeoutIsAnErrorThatNamesTheGuard) {
  if (!world_.backend->capabilities().virtual_time) GTEST_SKIP() << "would take half an hour";
  for (const int seconds : {1799, 1801}) {
    std::vector<std::string> texts(world_.size());
    world_.options.timeout = std::chrono::minutes(30);
    world_.backend->run_world(world_.options, [&](RankContext& rank) {
      const GuardContext context{&rank.group, rank.group.rank() % 2};
      try {
        main_process_first(
            context, GuardScope::kWorld,
            [&] { rank.runtime.sleep_for(std::chrono::seconds(seconds)); }, [] {});
      } catch (const CommError& error) {
        texts[static_cast<std::size_t>(rank.group.rank())] = error.what();
      }
    });
    for (std::size_t rank = 0; rank < world_.size(); ++rank) {
      const bool named = texts[rank].find("main_process_first") != std::string::npos;
      EXPECT_EQ(named, seconds > 1800) << texts[rank];
    }
  }
}

std::vector<std::string> available_backends() {
  std::vector<std::string> names;
  for (const BackendInfo& backend : list_backends()) {
    if (backend.available) names.emplace_back(backend.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllBackends, MainProcessFirst, testing::ValuesIn(available_backends()),
                         [](const auto& info) { return info.param; });

TEST(MainProcessFirstAlone, NotDistributedJustWorks) {
  int worked = 0;
  EXPECT_EQ(main_process_first(
                {}, GuardScope::kNode, [&] { ++worked; }, [&] { return worked; }),
            1);
  EXPECT_THROW(main_process_first(
                   {}, GuardScope::kNode, [] { throw 7; }, [] {}),
               int);
}

TEST(MainProcessFirstAlone, ContradictionsAreRefused) {
  try {
    main_process_first(
        {nullptr, 3}, GuardScope::kNode, [] {}, [] {});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "main_process_first: the local rank is 3, but there is no group; join it first");
  }
}

}  // namespace
}  // namespace ddproof
