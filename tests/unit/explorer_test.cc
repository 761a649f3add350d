// The search finds every outcome that any order has, with fewer runs, and says when it cannot.
#include "simulator/explorer.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/every_order.h"
#include "tests/unit/small_program.h"

namespace ddproof::sim {
namespace {

using test::Op;
using test::SmallProgram;

struct Found {
  std::set<std::string> outcomes;
  std::uint64_t runs = 0;
};

SimulationOptions options_of(const SmallProgram& program, Scheduler& scheduler, StackPool& stacks) {
  return {
      .ranks = static_cast<int>(program.ranks.size()), .scheduler = &scheduler, .stacks = &stacks};
}

// Without reduction; stops after so many runs.
Found try_every_order(const SmallProgram& program, StackPool& stacks, std::uint64_t runs_max) {
  test::EveryOrder orders;
  Found found;
  do {
    found.outcomes.insert(test::SmallWorld(program, options_of(program, orders, stacks)).run());
  } while (++found.runs < runs_max && orders.advance());
  return found;
}

Found explore(const SmallProgram& program, StackPool& stacks, Explorer& explorer) {
  Found found;
  SimulationOptions options = options_of(program, explorer, stacks);
  options.observer = &explorer;
  do {
    found.outcomes.insert(test::SmallWorld(program, options).run());
    ++found.runs;
  } while (explorer.advance());
  EXPECT_EQ(explorer.gap(), "");
  EXPECT_EQ(explorer.traces() + explorer.redundant(), found.runs);
  return found;
}

TEST(Explorer, FindsTheOutcomesOfAllOrdersInFewerRuns) {
  constexpr std::uint64_t kOrdersMax = 1000;
  StackPool stacks;
  int programs = 0, with_choice = 0, with_deadlock = 0;
  std::uint64_t all_runs = 0, runs = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const SmallProgram program = test::draw_program(seed, 4, 5);
    const Found all = try_every_order(program, stacks, kOrdersMax);
    if (all.runs == kOrdersMax) continue;
    Explorer explorer;
    const Found found = explore(program, stacks, explorer);
    ASSERT_EQ(found.outcomes, all.outcomes) << "program " << seed;
    ASSERT_LE(explorer.traces(), all.runs) << "program " << seed;
    ++programs;
    with_choice += all.outcomes.size() > 1 ? 1 : 0;
    with_deadlock += all.outcomes.begin()->find("deadlock") != std::string::npos ? 1 : 0;
    all_runs += all.runs;
    runs += found.runs;
  }
  EXPECT_GT(programs, 1000);
  EXPECT_GT(with_choice, programs / 4);
  EXPECT_GT(with_deadlock, programs / 10);
  EXPECT_LT(runs, all_runs / 10);
}

// `ranks` ranks that each do the same, with as many yields between.
SmallProgram same_on(int ranks, std::vector<std::pair<Op, int>> ops) {
  return {std::vector<std::vector<std::pair<Op, int>>>(static_cast<std::size_t>(ranks), ops)};
}

std::uint64_t traces_of(const SmallProgram& program) {
  StackPool stacks;
  Explorer explorer;
  explore(program, stacks, explorer);
  return explorer.traces();
}

TEST(Explorer, RunsOnceWhatNoOrderChanges) {
  EXPECT_EQ(traces_of(same_on(8, {{Op::kYield, 0}, {Op::kYield, 0}, {Op::kYield, 0}})), 1u);
  EXPECT_EQ(traces_of(same_on(8, {{Op::kRead, 0}, {Op::kAdd, 1}, {Op::kYield, 0}})), 1u);
}

TEST(Explorer, RunsEachOrderOfConflictsOnce) {
  EXPECT_EQ(traces_of(same_on(5, {{Op::kWrite, 0}})), 120u);
  EXPECT_EQ(traces_of({{{{Op::kWrite, 0}}, {{Op::kRead, 0}}, {{Op::kRead, 0}}}}), 4u);
  EXPECT_EQ(
      traces_of({{{{Op::kWrite, 0}}, {{Op::kWrite, 0}}, {{Op::kWrite, 1}}, {{Op::kWrite, 1}}}}),
      4u);
}

TEST(Explorer, KeepsVirtualTimesInOrder) {
  // Two writes a nanosecond apart cannot change places.
  EXPECT_EQ(traces_of({{{{Op::kWrite, 0}}, {{Op::kSleep, 0}, {Op::kWrite, 0}}}}), 1u);
}

TEST(Explorer, CountsTheMomentsThatItFinds) {
  StackPool stacks;
  Explorer explorer;
  explore(same_on(2, {{Op::kWrite, 0}}), stacks, explorer);
  EXPECT_EQ(explorer.traces(), 2u);
  EXPECT_EQ(explorer.redundant(), 0u);
  EXPECT_EQ(explorer.states(), 3u);  // before the first step; after either
}

TEST(Explorer, OrdersTheDeathOfARankWithAllSteps) {
  std::set<std::string> outcomes;
  Explorer explorer;
  do {
    std::string first, second;
    Simulation simulation({.ranks = 3, .scheduler = &explorer, .observer = &explorer});
    simulation.spawn(0, "main", [&] { simulation.hang(1); });
    simulation.spawn(1, "main", [&] { first = "ran"; });
    simulation.spawn(2, "main", [&] { second = simulation.is_hung(1) ? " saw" : ""; });
    simulation.run();
    outcomes.insert(first + second);
  } while (explorer.advance());
  EXPECT_EQ(explorer.gap(), "");
  EXPECT_EQ(outcomes, (std::set<std::string>{"", " saw", "ran", "ran saw"}));
}

TEST(Explorer, SaysWhatItCouldNotCover) {
  Explorer explorer;
  Simulation simulation({.ranks = 1, .scheduler = &explorer, .observer = &explorer});
  simulation.spawn(0, "main", [&] { simulation.note_uncovered("a thing of its own"); });
  simulation.run();
  EXPECT_FALSE(explorer.advance());
  EXPECT_EQ(explorer.gap(), "a thing of its own");
}

TEST(Explorer, SaysThatAProgramDoesNotRepeatItself) {
  Explorer explorer;
  bool is_first = true;
  do {
    Simulation simulation({.ranks = 3, .scheduler = &explorer, .observer = &explorer});
    const ObjectKey object = simulation.new_object();
    for (int rank = is_first ? 0 : 1; rank < 3; ++rank) {
      simulation.spawn(rank, "main", [&] { simulation.touch(object, Access::kWrite); });
    }
    simulation.run();
    is_first = false;
  } while (explorer.advance());
  EXPECT_EQ(explorer.gap(),
            "the program does not repeat itself: the same choices led to another fiber");
}

}  // namespace
}  // namespace ddproof::sim
