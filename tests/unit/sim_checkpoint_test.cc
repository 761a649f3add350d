// Checkpoints on the simulated disk: whatever strikes a save, the next run finds the state before
// it or the whole new one; once the save has returned, the new one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/sim/sim_world.h"
#include "reference/checkpoint/training_state.h"
#include "reference/compute/cpu.h"
#include "reference/optim/sgd.h"
#include "reference/train/shared_checkpoint.h"

namespace ddproof {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int kRanks = 2;
constexpr int kSeeds = 20;  // of what survives a power cut
constexpr int kNewStep = 2;

Bytes state_after(std::int64_t step) {
  Cpu<float> cpu;
  Parameter<float> weight{"weight", Tensor<float>(cpu, {64}), Tensor<float>(cpu, {64}), true};
  std::ranges::fill(weight.value.span(), static_cast<float>(step));
  return encode_state({.step = step}, Sgd<float>({&weight}, {.lr = 0.1}));
}

sim::Report run(sim::Disk& disk, const std::string& faults,
                const std::function<void(RankContext&, CheckpointDirectory&)>& body) {
  SimWorldOptions options;
  options.world.world_size = kRanks;
  options.faults = sim::parse_fault_plan(faults);
  options.disk = &disk;
  const sim::Report report = run_sim_world(options, [&](RankContext& rank) {
    CheckpointDirectory directory(rank.runtime, "/run");
    body(rank, directory);
  });
  rethrow(report);
  return report;
}

void save(RankContext& rank, CheckpointDirectory& directory, std::int64_t step) {
  save_shared(directory, rank.group.rank() == 0 ? state_after(step) : Bytes(), &rank.group);
}

// The step of the checkpoint that all ranks load; 0: there is none.
std::int64_t load(RankContext& rank, CheckpointDirectory& directory) {
  const auto loaded = load_shared(directory, &rank.group);
  if (!loaded) return 0;
  const std::int64_t step = read_progress(verify_state(loaded->path, Bytes(loaded->bytes))).step;
  EXPECT_EQ(loaded->bytes, state_after(step));
  // There may be no newest file, but never a broken one.
  EXPECT_TRUE(loaded->warning.empty() ||
              loaded->warning.starts_with("/run/checkpoint.safetensors: open: no such file"))
      << loaded->warning;
  return step;
}

void save_before(sim::Disk& disk, std::int64_t steps) {
  run(disk, "", [&](RankContext& rank, CheckpointDirectory& directory) {
    for (std::int64_t step = 1; step <= steps; ++step) save(rank, directory, step);
  });
}

// What the next run loads. The one after it can save and load, too.
std::int64_t step_after_restart(sim::Disk& disk) {
  std::array<std::int64_t, kRanks> steps{};
  run(disk, "", [&](RankContext& rank, CheckpointDirectory& directory) {
    steps[static_cast<std::size_t>(rank.group.rank())] = load(rank, directory);
  });
  EXPECT_EQ(steps[0], steps[1]);
  run(disk, "", [](RankContext& rank, CheckpointDirectory& directory) {
    save(rank, directory, kNewStep + 1);
    EXPECT_EQ(load(rank, directory), kNewStep + 1);
  });
  return steps[0];
}

// How often the next run found what was there before, and how often the new state.
struct Found {
  int before = 0, after = 0;

  void count(std::int64_t step, std::int64_t step_before, bool saved) {
    EXPECT_TRUE(step == kNewStep || (step == step_before && !saved))
        << "found step " << step << ", before it was " << step_before << ", saved: " << saved;
    ++(step == kNewStep ? after : before);
  }
};

// The power is cut before each change that a save makes and before the first one after it.
TEST(SimCheckpoint, APowerCutAnywhereInASaveLeavesTheOldStateOrTheNew) {
  for (const std::int64_t step_before : {0, 1}) {
    Found found;
    for (int seed = 1; seed <= kSeeds; ++seed) {
      bool saved = false;
      for (int change = 1; !saved; ++change) {
        const std::string fault = fmt::format("power-cut rank=0 change={} seed={}", change, seed);
        SCOPED_TRACE(fault);
        sim::Disk disk;
        save_before(disk, step_before);
        const auto report = run(disk, fault, [&](RankContext& rank, CheckpointDirectory& folder) {
          save(rank, folder, kNewStep);
          saved = true;
          if (rank.group.rank() == 0) rank.runtime.files().create("/next");
        });
        EXPECT_EQ(sim::to_string(report.faults_fired), fault);
        found.count(step_after_restart(disk), step_before, saved);
      }
    }
    std::printf("before: step %d; found %d times, the new one %d times\n",
                static_cast<int>(step_before), found.before, found.after);
    EXPECT_GT(found.before, 0);
    EXPECT_GT(found.after, 0);
  }
}

// Saves, at most so often as `tries` says. Whether it went well, the same on all ranks.
bool save_with_tries(RankContext& rank, CheckpointDirectory& directory, int tries) {
  for (int i = 0; i < tries; ++i) {
    try {
      save(rank, directory, kNewStep);
      return true;
    } catch (const DataError&) {
    }
  }
  return false;
}

// A fault at each call of a save that it can strike; the job gives up or tries once more, and ends
// with or without a power cut.
Found strike(const std::string& form, int tries) {
  Found found;
  for (int power_cut = 0; power_cut <= kSeeds; ++power_cut) {
    bool struck = true;
    for (int number = 1; struck; ++number) {
      const std::string fault = fmt::format(fmt::runtime(form), number);
      SCOPED_TRACE(fmt::format("{}, {} tries, power cut {}", fault, tries, power_cut));
      sim::Disk disk;
      save_before(disk, 1);
      std::array<bool, kRanks> saved{};
      const auto report = run(disk, fault, [&](RankContext& rank, CheckpointDirectory& folder) {
        saved[static_cast<std::size_t>(rank.group.rank())] = save_with_tries(rank, folder, tries);
      });
      struck = !report.faults_fired.empty();
      EXPECT_EQ(saved[0], saved[1]);
      EXPECT_TRUE(struck || saved[0]);
      EXPECT_FALSE(struck && tries == 1 && saved[0]) << "a failure was not told";
      if (power_cut > 0) disk.cut_power(static_cast<std::uint64_t>(power_cut));
      const std::int64_t step = step_after_restart(disk);
      if (struck) found.count(step, 1, saved[0]);
    }
  }
  EXPECT_GT(found.before + found.after, 0) << form << " never struck";
  std::printf("%s, %d tries: found the old state %d times, the new one %d times\n", form.c_str(),
              tries, found.before, found.after);
  return found;
}

TEST(SimCheckpoint, AFailedSyncLeavesTheOldStateOrTheNewAndTheNextSaveHolds) {
  const Found once = strike("failed-sync rank=0 sync={}", 1);
  EXPECT_GT(once.before, 0);
  EXPECT_GT(once.after, 0);  // the last sync is that of the folder
  EXPECT_EQ(strike("failed-sync rank=0 sync={}", 2).before, 0);
}

TEST(SimCheckpoint, AShortWriteLeavesTheOldStateAndTheNextSaveHolds) {
  EXPECT_EQ(strike("short-write rank=0 write={} bytes=100", 1).after, 0);
  EXPECT_EQ(strike("short-write rank=0 write={} bytes=100", 2).before, 0);
}

TEST(SimCheckpoint, AFullDiskLeavesTheOldState) {
  EXPECT_EQ(strike("full-disk rank=0 write={}", 1).after, 0);
  EXPECT_EQ(strike("full-disk rank=0 write={}", 2).after, 0);
}

}  // namespace
}  // namespace ddproof
