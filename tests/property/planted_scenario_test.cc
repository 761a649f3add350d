// Shrinking, over bugs planted in larger programs: the result fails in the same way, replays, and
// is small.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "backends/local/os_runtime.h"
#include "properties/scenario/parse.h"
#include "properties/scenario/shrink.h"
#include "tests/property/planted_scenarios.h"

namespace ddproof {
namespace {

using scenario::parse_scenario;
using scenario::Scenario;
using scenario::ScenarioResult;
using scenario::ScenarioSize;
using scenario::ShrunkScenario;

constexpr int kBugsOfAKind = 8;
constexpr int kRanksMax = 4;
constexpr std::int64_t kEventsMax = 10;

struct Planted {
  std::string text;
  Scenario scenario;
  ScenarioResult failing;
};

// The next seed's, from `seed`, whose bug shows.
Planted plant(std::size_t kind, std::uint64_t& seed) {
  for (;; ++seed) {
    Planted planted{test::planted_scenario(kind, seed), {}, {}};
    const bool is_race = test::planted_kinds()[kind].find("races") != std::string::npos;
    planted.text.insert(1, R"("schedules": [{"scheduler": ")" +
                               std::string(is_race ? "campaign" : "round robin") + R"("}], )");
    planted.scenario = parse_scenario(planted.text, "big.json");
    planted.failing = run_scenario(planted.scenario, {});
    if (planted.failing.told.verdict.outcome != scenario::Outcome::kPasses) return planted;
  }
}

TEST(PlantedScenario, PassesWithoutTheBug) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Scenario scenario = parse_scenario(test::correct_scenario(seed), "x.json");
    EXPECT_EQ(run_scenario(scenario, {}).wrong, "") << test::correct_scenario(seed);
  }
}

template <class Value>
std::string median_and_worst(std::vector<Value> values) {
  std::ranges::sort(values);
  return std::to_string(values[values.size() / 2]) + ", " + std::to_string(values.back());
}

class Shrinking : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Shrinking, LeavesFewRanksAndEventsOfAPlantedBug) {
  OsRuntime runtime;
  std::vector<int> ranks;
  std::vector<std::int64_t> events;
  std::vector<std::int64_t> milliseconds;
  std::uint64_t seed = 0;
  for (int i = 0; i < kBugsOfAKind; ++i, ++seed) {
    const Planted planted = plant(GetParam(), seed);
    const auto begin = runtime.now();
    const ShrunkScenario shrunk =
        shrink_scenario(planted.text, planted.scenario, planted.failing, "small.json");
    milliseconds.push_back(
        std::chrono::duration_cast<std::chrono::milliseconds>(runtime.now() - begin).count());
    const ScenarioSize size = size_of(shrunk.scenario, shrunk.result);
    ranks.push_back(size.ranks);
    events.push_back(size.events());
    EXPECT_EQ(shrunk.result.told.verdict.outcome, planted.failing.told.verdict.outcome)
        << shrunk.text;
    EXPECT_LE(size.ranks, kRanksMax) << "seed " << seed << "\n" << shrunk.text;
    EXPECT_LE(size.events(), kEventsMax) << "seed " << seed << "\n" << shrunk.text;
    const Scenario read = parse_scenario(shrunk.text, "small.json");
    ASSERT_TRUE(shrunk.result.recorded) << shrunk.text;
    EXPECT_EQ(replay_scenario(read, *shrunk.result.recorded, {}).told.wrong,
              shrunk.result.told.wrong);
  }
  std::cout << test::planted_kinds()[GetParam()] << ": " << kBugsOfAKind
            << " bugs; median, worst: ranks " << median_and_worst(ranks) << "; events "
            << median_and_worst(events) << "; ms " << median_and_worst(milliseconds) << "\n";
}

INSTANTIATE_TEST_SUITE_P(PlantedBugs, Shrinking,
                         ::testing::Range<std::size_t>(0, test::planted_kinds().size()),
                         [](const auto& info) {
                           std::string name = test::planted_kinds()[info.param];
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace ddproof
