// Schedulers find planted bugs at least as often as they promise. Seeds are fixed, so the hits are
// the same in every run; the level says how unlikely they were to fall below a bound that holds.
#include "simulator/pct.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "tests/support/binomial.h"
#include "tests/support/every_order.h"
#include "tests/unit/planted_bugs.h"

namespace ddproof::sim {
namespace {

using test::PlantedBug;

constexpr double kLevel = 1e-4;
constexpr std::uint64_t kRuns = 20'000;

std::uint64_t hits(const PlantedBug& bug, Scheduler& scheduler, std::uint64_t runs = kRuns) {
  StackPool stacks;
  std::uint64_t result = 0;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    result += bug.is_hit(test::order_of_turns(bug, seed, scheduler, &stacks)) ? 1 : 0;
  }
  return result;
}

struct Facts {
  double hit_probability = 0;  // of a random walk
  std::uint64_t decisions_max = 0;
  std::uint64_t orders = 0;
};

Facts facts_of(const PlantedBug& bug) {
  StackPool stacks;
  test::EveryOrder orders;
  Facts facts;
  do {
    const bool hit = bug.is_hit(test::order_of_turns(bug, 0, orders, &stacks));
    facts.hit_probability += hit ? orders.probability() : 0;
    facts.decisions_max = std::max(facts.decisions_max, orders.decisions());
    ++facts.orders;
  } while (orders.advance());
  return facts;
}

class PlantedBugs : public testing::TestWithParam<int> {
 protected:
  const PlantedBug bug_ = test::planted_bugs()[static_cast<std::size_t>(GetParam() - 1)];
};

TEST_P(PlantedBugs, PctHitsThemAsOftenAsItPromises) {
  const std::uint64_t steps = facts_of(bug_).decisions_max;
  Pct pct(bug_.depth, steps);
  const double bound = pct_bound(bug_.turns.size(), steps, bug_.depth);
  const std::uint64_t found = hits(bug_, pct);
  EXPECT_GT(test::at_most(found, kRuns, bound), kLevel) << found << " hits, bound " << bound;
}

TEST_P(PlantedBugs, ARandomWalkHitsThemAsOftenAsCountingSays) {
  const double probability = facts_of(bug_).hit_probability;
  RandomWalk walk;
  const std::uint64_t found = hits(bug_, walk);
  EXPECT_GT(test::at_most(found, kRuns, probability), kLevel) << found << " of " << probability;
  EXPECT_GT(test::at_least(found, kRuns, probability), kLevel) << found << " of " << probability;
}

INSTANTIATE_TEST_SUITE_P(Depth, PlantedBugs, testing::Values(1, 2, 3),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(Pct, OfALowerDepthNeverHitsADeeperBug) {
  const auto bugs = test::planted_bugs();
  Pct one(1, 12), two(2, 12);
  EXPECT_EQ(hits(bugs[1], one), 0u);
  EXPECT_EQ(hits(bugs[2], two), 0u);
}

TEST(Pct, FindsLongOrderingsThatARandomWalkMisses) {
  const PlantedBug bug{1, {1, 30}, [](const std::string& order) { return order.back() == '0'; }};
  Pct pct(1, 1);
  RandomWalk walk;
  EXPECT_GT(hits(bug, pct, 1000), 400u);
  EXPECT_EQ(hits(bug, walk, 1000), 0u);
}

TEST(Pct, GivesTheSameRunForTheSameSeed) {
  const PlantedBug bug = test::planted_bugs()[2];
  Pct pct(3, 12);
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::string order = test::order_of_turns(bug, seed, pct);
    EXPECT_EQ(order, test::order_of_turns(bug, seed, pct));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST(Pct, StatesItsBoundAndWhatACampaignMissed) {
  EXPECT_DOUBLE_EQ(pct_bound(8, 224, 1), 1.0 / 8);
  EXPECT_DOUBLE_EQ(pct_bound(8, 224, 3), 1.0 / (8.0 * 224 * 224));
  EXPECT_DOUBLE_EQ(miss_probability(0.5, 3), 0.125);
  EXPECT_DOUBLE_EQ(miss_probability(1, 1), 0);
  EXPECT_DOUBLE_EQ(miss_probability(0.25, 0), 1);
}

TEST(Pct, RefusesADepthOrStepsOfZero) {
  EXPECT_THROW(Pct(0, 1), std::invalid_argument);
  EXPECT_THROW(Pct(1, 0), std::invalid_argument);
}

}  // namespace
}  // namespace ddproof::sim
