// The simulated disk and clocks under the faults of a plan, as ranks see them.
#include "backends/sim/sim_files.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/sim/sim_world.h"

namespace ddproof {
namespace {

SimWorldOptions world_of(int ranks, const std::string& plan, sim::Disk* disk = nullptr) {
  SimWorldOptions options;
  options.world.world_size = ranks;
  options.faults = sim::parse_fault_plan(plan);
  options.disk = disk;
  return options;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const DataError& error) {
    return error.what();
  }
  return "none";
}

const std::vector<std::byte> kTen(10, std::byte{1});

TEST(SimFiles, AShortWriteFailsAndLeavesItsFirstBytes) {
  rethrow(run_sim_world(world_of(2, "short-write rank=1 write=2 bytes=3"), [](RankContext& rank) {
    const std::string path = "/" + std::to_string(rank.group.rank());
    const auto file = rank.runtime.files().create(path);
    file->append(kTen);
    EXPECT_EQ(
        error_of([&] { file->append(kTen); }),
        rank.group.rank() == 0 ? "none" : "/1: append: input/output error after 3 of 10 bytes");
    EXPECT_EQ(file->size(), rank.group.rank() == 0 ? 20u : 13u);
    file->append(kTen);
  }));
}

TEST(SimFiles, AFullDiskFailsAllLaterWritesOfAllRanks) {
  rethrow(run_sim_world(world_of(2, "full-disk rank=1 write=1"), [](RankContext& rank) {
    const std::string path = "/" + std::to_string(rank.group.rank());
    const auto file = rank.runtime.files().create(path);
    if (rank.group.rank() == 0) file->append(kTen);
    rank.group.barrier()->wait();
    const std::string full = path + ": append: no space left on the disk after 0 of 10 bytes";
    if (rank.group.rank() == 1) {
      EXPECT_EQ(error_of([&] { file->append(kTen); }), full);
    }
    rank.group.barrier()->wait();
    EXPECT_EQ(error_of([&] { file->append(kTen); }), full);
  }));
}

TEST(SimFiles, AFailedSyncSaysSoAndTheNextOneLies) {
  sim::Disk disk;
  rethrow(run_sim_world(world_of(1, "failed-sync rank=0 sync=2; failed-sync rank=0 sync=4", &disk),
                        [](RankContext& rank) {
                          FileSystem& files = rank.runtime.files();
                          const auto file = files.create("/a");
                          file->append(kTen);
                          file->sync();
                          file->append(kTen);
                          EXPECT_EQ(error_of([&] { file->sync(); }),
                                    "/a: sync: input/output error");
                          EXPECT_EQ(error_of([&] { file->sync(); }), "none");
                          EXPECT_EQ(error_of([&] { files.sync_directory("/"); }),
                                    "/: sync_directory: input/output error");
                        }));
  EXPECT_EQ(disk.open("/a")->durable_bytes, 10u);
}

TEST(SimFiles, APowerCutKillsAllRanksBeforeTheChange) {
  sim::Disk disk;
  const sim::Report report =
      run_sim_world(world_of(3, "power-cut rank=0 change=4 seed=1", &disk), [](RankContext& rank) {
        if (rank.group.rank() == 0) {
          FileSystem& files = rank.runtime.files();
          const auto file = files.create("/a");
          file->append(kTen);
          file->sync();
          files.sync_directory("/");
          ADD_FAILURE() << "outlived the power cut";
        }
        rank.group.barrier()->wait();
      });
  EXPECT_EQ(report.verdict, sim::Verdict::kNone);
  for (const sim::RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.outcome, sim::RankOutcome::kCrashed);
  }
  EXPECT_EQ(sim::to_string(report.faults_fired), "power-cut rank=0 change=4 seed=1");
}

TEST(SimFiles, WhatRanksDoIsCountedWithAndWithoutFaults) {
  const auto calls_of_ranks = [](const std::string& plan) {
    const sim::Report report = run_sim_world(world_of(2, plan), [](RankContext& rank) {
      FileSystem& files = rank.runtime.files();
      if (rank.group.rank() == 1) {
        EXPECT_FALSE(files.exists("/a"));
        return;
      }
      files.make_directory("/d");
      const auto file = files.create("/d/a");
      for (int i = 0; i < 3; ++i) error_of([&] { file->append(kTen); });
      file->sync();
      files.rename("/d/a", "/d/b");
      files.sync_directory("/d");
      files.remove("/d/b");
    });
    EXPECT_EQ(report.ranks[1].disk, sim::DiskCalls{});
    return report.ranks[0].disk;
  };
  const sim::DiskCalls expected{.changes = 9, .writes = 3, .syncs = 2};
  EXPECT_EQ(calls_of_ranks(""), expected);
  EXPECT_EQ(calls_of_ranks("short-write rank=0 write=2 bytes=3"), expected);
}

TEST(SimFiles, ADeadRanksDestructorsChangeNothing) {
  struct RemoveAtEnd {
    FileSystem& files;
    ~RemoveAtEnd() {
      files.remove("/a");
      files.create("/b");
    }
  };
  sim::Disk disk;
  run_sim_world(world_of(1, "power-cut rank=0 change=4 seed=1", &disk), [](RankContext& rank) {
    FileSystem& files = rank.runtime.files();
    const RemoveAtEnd at_end{files};
    files.create("/a")->sync();
    files.sync_directory("/");
    files.create("/c");
  });
  EXPECT_EQ(disk.list("/"), std::vector<std::string>{"a"});
}

TEST(SimRuntime, AWallClockJumpsButTheMonotonicOneDoesNot) {
  const auto report =
      run_sim_world(world_of(2, "clock-jump rank=1 start=1ms by=-3s"), [](RankContext& rank) {
        Runtime& runtime = rank.runtime;
        const Duration before = runtime.wall_clock();
        runtime.sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(runtime.now(), std::chrono::milliseconds(1));
        EXPECT_EQ(runtime.wall_clock() - before,
                  std::chrono::milliseconds(rank.group.rank() == 0 ? 1 : -2'999));
      });
  rethrow(report);
  EXPECT_EQ(report.faults_fired.size(), 1u);
}

TEST(SimWorld, RefusesFaultsThatTheWorldCannotHave) {
  try {
    run_sim_world(world_of(2, "crash rank=2 operation=1"), [](RankContext&) {});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "fault \"crash rank=2 operation=1\": rank 2 is not in a world of 2 ranks");
  }
}

}  // namespace
}  // namespace ddproof
