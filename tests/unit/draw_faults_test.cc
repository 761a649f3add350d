// Drawn plans: every kind and every place comes up, and runs differ in kind.
#include "simulator/draw_faults.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace ddproof::sim {
namespace {

// Ranks 1 and 3 leave the disk alone.
const FaultShape kShape{.ranks = 4,
                        .operations = 6,
                        .messages = 5,
                        .message_bytes = 16,
                        .disk = {{.changes = 9, .writes = 2, .syncs = 3}, {}, {.changes = 1}, {}},
                        .duration = 1'000'000};
constexpr int kSeeds = 4000;

TEST(DrawFaults, TheSameSeedDrawsTheSamePlanAndOthersDiffer) {
  std::set<std::string> plans;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const FaultPlan plan = draw_faults(seed, kShape);
    EXPECT_EQ(draw_faults(seed, kShape), plan);
    plans.insert(to_string(plan));
  }
  EXPECT_GT(plans.size(), 190u);
}

TEST(DrawFaults, EveryPlanFitsTheWorldAndReadsBack) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const FaultPlan plan = draw_faults(seed, kShape);
    check_fault_plan(plan, kShape.ranks);
    EXPECT_EQ(parse_fault_plan(to_string(plan)), plan) << to_string(plan);
  }
}

TEST(DrawFaults, EveryKindIsActiveInAQuarterOfTheRuns) {
  std::array<int, kFaultKindCount> runs{};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::set<FaultKind> kinds;
    for (const Fault& fault : draw_faults(seed, kShape)) kinds.insert(fault.kind);
    for (const FaultKind kind : kinds) ++runs[static_cast<std::size_t>(kind)];
  }
  for (int kind = 0; kind < kFaultKindCount; ++kind) {
    std::printf("%-12s %4d of %d runs\n", to_string(static_cast<FaultKind>(kind)), runs[kind],
                kSeeds);
    // Binomial: 1,000 expected, standard deviation 27; the seeds are fixed, so this never flakes.
    EXPECT_NEAR(runs[kind], kSeeds / 4, 6 * 27) << to_string(static_cast<FaultKind>(kind));
  }
}

TEST(DrawFaults, ShortMessagesAreTruncatedToo) {
  FaultShape shape = kShape;
  shape.message_bytes = 1000;
  int drawn = 0, short_ones = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const Fault& fault : draw_faults(seed, shape)) {
      if (fault.kind != FaultKind::kTruncate) continue;
      ++drawn;
      short_ones += fault.amount < 8 ? 1 : 0;
    }
  }
  EXPECT_GT(short_ones, drawn / 5);  // uniform lengths would give one in 125
}

TEST(DrawFaults, EveryPlaceIsHit) {
  std::map<FaultKind, std::set<std::pair<int, std::uint64_t>>> places;
  std::set<std::pair<int, int>> pairs;
  std::set<std::vector<int>> sides;
  bool heals = false, stays = false;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const Fault& fault : draw_faults(seed, kShape)) {
      places[fault.kind].insert({fault.rank, fault.number});
      if (fault.kind == FaultKind::kDrop) pairs.insert({fault.rank, fault.peer});
      if (fault.kind != FaultKind::kPartition) continue;
      sides.insert(fault.ranks);
      (fault.end == kNever ? stays : heals) = true;
    }
  }
  EXPECT_EQ(places[FaultKind::kCrash].size(), 4u * 6);
  EXPECT_EQ(places[FaultKind::kHang].size(), 4u * 6);
  EXPECT_EQ(places[FaultKind::kDrop].size(), 4u * 5);
  EXPECT_EQ(places[FaultKind::kFlip].size(), 4u * 5);
  EXPECT_EQ(places[FaultKind::kSlow].size(), 4u);
  EXPECT_EQ(pairs.size(), 4u * 3);
  EXPECT_EQ(sides.size(), 14u);  // all but nobody and everybody
  EXPECT_TRUE(heals && stays);
  // Of the disk: the calls that are made, and no others.
  using Places = std::set<std::pair<int, std::uint64_t>>;
  EXPECT_EQ(places[FaultKind::kShortWrite], (Places{{0, 1}, {0, 2}}));
  EXPECT_EQ(places[FaultKind::kFullDisk], (Places{{0, 1}, {0, 2}}));
  EXPECT_EQ(places[FaultKind::kFailedSync], (Places{{0, 1}, {0, 2}, {0, 3}}));
  Places changes{{2, 1}};
  for (std::uint64_t change = 1; change <= 9; ++change) changes.insert({0, change});
  EXPECT_EQ(places[FaultKind::kPowerCut], changes);
}

TEST(DrawFaults, DrawsNothingThatTheShapeLacks) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const Fault& fault : draw_faults(seed, {.ranks = 1})) {
      const bool fits = fault.kind == FaultKind::kCrash || fault.kind == FaultKind::kHang ||
                        fault.kind == FaultKind::kSlow || fault.kind == FaultKind::kClockJump;
      EXPECT_TRUE(fits) << to_string(fault);
    }
  }
}

}  // namespace
}  // namespace ddproof::sim
