// Processes joining a world over one store; here each is a thread with its own Runtime and client.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/gloo/tcp/gloo_backend.h"
#include "backends/local/os_runtime.h"
#include "backends/store/memory_store.h"
#include "tests/support/few_tasks_runtime.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;

class GlooJoin : public ::testing::Test {
 protected:
  using Rank = std::function<void(int rank, OsRuntime& runtime, MemoryStore& store)>;

  // Runs `body` for the given ranks, each in a thread, all on this test's store.
  void run(const std::vector<int>& ranks, const Rank& body) {
    std::vector<std::unique_ptr<Task>> tasks;
    for (int rank : ranks) {
      tasks.push_back(main_.spawn("rank", [&, rank] {
        OsRuntime runtime;
        MemoryStore store(server_, runtime);
        body(rank, runtime, store);
      }));
    }
    for (const auto& task : tasks) task->join();
  }

  std::unique_ptr<ProcessGroup> join(int rank, int size, Runtime& runtime, MemoryStore& store,
                                     Duration timeout = std::chrono::seconds(20)) {
    return backend_.join({.rank = rank, .world_size = size, .timeout = timeout}, runtime, store);
  }

  // `call` fails because one rank is lost. Returns the text.
  static std::string expect_lost(int culprit, const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommErrorKind::kPeerLost) << error.what();
      EXPECT_EQ(error.culprits(), std::vector{culprit});
      return error.what();
    }
    return "";
  }

  OsRuntime main_;
  std::shared_ptr<MemoryStoreServer> server_ = std::make_shared<MemoryStoreServer>(main_);
  GlooBackend backend_{ProcessHost{}};
};

// P34 (PITFALLS.md): joining and leaving three times on one store.
TEST_F(GlooJoin, AWorldIsMadeThreeTimesOnOneStore) {
  run({0, 1}, [this](int rank, OsRuntime& runtime, MemoryStore& store) {
    for (int i = 0; i < 3; ++i) {
      const auto group = join(rank, 2, runtime, store);
      std::vector<int> data{rank + 1};
      group->all_reduce(Buffer::of(std::span<int>(data)))->wait();
      EXPECT_EQ(data[0], 3);
    }
  });
}

TEST_F(GlooJoin, RanksThatDoNotComeAreNamed) {
  run({0, 2}, [this](int rank, OsRuntime& runtime, MemoryStore& store) {
    try {
      join(rank, 4, runtime, store, milliseconds(300));
      ADD_FAILURE();
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommErrorKind::kTimeout);
      EXPECT_EQ(error.culprits(), (std::vector{1, 3}));
      EXPECT_EQ(error.what(),
                "rank " + std::to_string(rank) +
                    "/4 [gloo] join: ranks 1, 3 did not come within 300 ms; start "
                    "every rank with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE");
    }
  });
}

TEST_F(GlooJoin, RanksMustAgreeOnTheWorldSize) {
  OsRuntime runtime;
  MemoryStore store(server_, runtime);
  store.set("gloo/1/world_size", "4");
  try {
    join(1, 2, runtime, store);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "backend gloo: WORLD_SIZE is 2 on rank 1, but 4 on the rank that came first; give "
                 "every rank the same");
  }
}

TEST_F(GlooJoin, BadRanksAndWorldSizesAreRefusedAtOnce) {
  OsRuntime runtime;
  MemoryStore store(server_, runtime);
  EXPECT_THROW(join(-1, 2, runtime, store), ConfigError);
  EXPECT_THROW(join(2, 2, runtime, store), ConfigError);
  EXPECT_THROW(join(0, 0, runtime, store), ConfigError);
  EXPECT_EQ(store.num_keys(), 0) << "a refused rank left keys behind";
}

TEST_F(GlooJoin, ARankThatDiesBeforeAllHaveComeIsNamedAtOnce) {
  std::atomic<int> named = 0;
  run({0, 1, 2}, [&](int rank, OsRuntime& runtime, MemoryStore& store) {
    if (rank == 2) {
      store.set_last_will("lost/1/2", "its process died");
      store.die();
      return;
    }
    const std::string text =
        expect_lost(2, [&] { join(rank, 3, runtime, store, std::chrono::hours(1)); });
    EXPECT_EQ(text, "rank " + std::to_string(rank) +
                        "/3 [gloo] join: cannot connect to every rank: rank 2 is lost "
                        "(its process died); see whether every rank lives, and check "
                        "that the ranks' machines reach each other");
    ++named;
  });
  EXPECT_EQ(named, 2);
}

// This one dies when all have come and before it has told its address.
TEST_F(GlooJoin, ARankThatDiesWhileAllConnectIsNamed) {
  std::atomic<int> named = 0;
  run({0, 1, 2}, [&](int rank, OsRuntime& runtime, MemoryStore& store) {
    if (rank == 2) {
      store.set_last_will("lost/1/2", "its process died");
      if (store.add("gloo/1/arrived", 1) == 3) store.set("gloo/1/everybody", "");
      store.wait({"gloo/1/mesh/0", "gloo/1/mesh/1"}, kForever);
      store.die();
      return;
    }
    expect_lost(2, [&] { join(rank, 3, runtime, store, std::chrono::hours(1)); });
    ++named;
  });
  EXPECT_EQ(named, 2);
}

// It lives, and says goodbye to the store: nothing but its own word tells the others.
TEST_F(GlooJoin, ARankThatCannotConnectIsNamedByTheOthers) {
  std::atomic<int> named = 0;
  run({0, 1, 2}, [&](int rank, OsRuntime& runtime, MemoryStore& store) {
    if (rank == 2) {
      FewTasksRuntime no_tasks(0);
      EXPECT_THROW(join(rank, 3, no_tasks, store), ResourceError);
      return;
    }
    const std::string text =
        expect_lost(2, [&] { join(rank, 3, runtime, store, std::chrono::hours(1)); });
    EXPECT_EQ(text, "rank " + std::to_string(rank) +
                        "/3 [gloo] join: cannot connect to every rank: rank 2 cannot "
                        "connect (task \"gloo watch\": no more threads); see whether "
                        "every rank lives, and check that the ranks' machines reach each "
                        "other");
    ++named;
  });
  EXPECT_EQ(named, 2);
}

// Gloo would end the process when more comes than was expected, and take less without a word.
TEST_F(GlooJoin, UncheckedCallsOfUnequalSizesAreATimeout) {
  run({0, 1}, [&](int rank, OsRuntime& runtime, MemoryStore& store) {
    std::vector<int> data(rank == 0 ? 8 : 4);
    const CallOptions soon{.timeout = milliseconds(100)};
    for (const int root : {0, 1}) {
      const auto group = join(rank, 2, runtime, store);
      try {
        group->broadcast(Buffer::of(std::span(data)), root, soon)->wait();
        ADD_FAILURE();
      } catch (const CommError& error) {
        EXPECT_EQ(error.kind(), CommErrorKind::kTimeout) << error.what();
      }
    }
  });
}

// A process that is killed says nothing; its connections break and the store carries out its will.
TEST_F(GlooJoin, AKilledProcessIsNamedByEveryOtherRank) {
  std::atomic<int> named = 0;
  run({0, 1, 2, 3}, [&](int rank, OsRuntime& runtime, MemoryStore& store) {
    auto group = join(rank, 4, runtime, store);
    if (rank == 2) {
      store.die();
      group.reset();
      return;
    }
    expect_lost(2, [&] { group->barrier({}, {"t.cc", 3, ""})->wait(); });
    ++named;
  });
  EXPECT_EQ(named, 3);
}

// Its store client has joined two worlds that live at once; it dies in both.
TEST_F(GlooJoin, AKilledProcessIsNamedInEveryWorldOfIt) {
  run({0, 1}, [this](int rank, OsRuntime& runtime, MemoryStore& store) {
    const auto first = join(rank, 2, runtime, store);
    const auto second = join(rank, 2, runtime, store);
    if (rank == 1) {
      store.die();
      store.wait({"noticed"}, kForever);
      return;
    }
    for (ProcessGroup* group : {first.get(), second.get()}) {
      expect_lost(1, [&] { group->barrier({}, {"t.cc", 3, ""})->wait(); });
    }
    store.set("noticed", "");
  });
}

}  // namespace
}  // namespace ddproof
