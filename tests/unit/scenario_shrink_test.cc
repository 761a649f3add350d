// Shrinking scenarios, by examples; tests/property has the planted bugs.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "backends/api/error.h"
#include "cli/subcommand.h"
#include "properties/scenario/parse.h"
#include "properties/scenario/scenario_edit.h"
#include "properties/scenario/shrink.h"
#include "tests/support/run_command.h"
#include "tests/support/temporary_folder.h"

namespace ddproof::scenario {
namespace {

ShrunkScenario shrink(const std::string& text) {
  const Scenario scenario = parse_scenario(text, "big.json");
  return shrink_scenario(text, scenario, run_scenario(scenario, {}), "small.json");
}

const char* const kSkippedInOneTurn = R"({"fact": "rank 11 skips", "world_size": 16,
    "ranks_per_node": 4, "programs": {"*": [
      {"do": "broadcast", "count": 100, "label": "weights"},
      {"do": "repeat", "times": 6, "steps": [
        {"do": "compute", "for": "3 ms"},
        {"do": "if", "ranks": "11", "turns": "3", "then": [], "else": [
          {"do": "all_reduce", "count": 4096, "label": "gradients", "at": "train.py:88"}]},
        {"do": "barrier", "label": "epoch end"}]}]},
    "expect": {"outcome": "passes"}})";

TEST(ScenarioShrink, KeepsTheCallsThatTheVerdictNames) {
  const ShrunkScenario shrunk = shrink(kSkippedInOneTurn);
  EXPECT_EQ(shrunk.text,
            "{\n"
            "  \"fact\": \"rank 11 skips\",\n"
            "  \"world_size\": 3,\n"
            "  \"programs\": {\n"
            "    \"0-1\": [\n"
            "      {\"do\":\"all_reduce\",\"label\":\"gradients\",\"at\":\"train.py:88\"}],\n"
            "    \"2\": [\n"
            "      {\"do\":\"barrier\",\"label\":\"epoch end\"}]\n"
            "  },\n"
            "  \"expect\": {\"outcome\":\"passes\"},\n"
            "  \"schedules\": [{\"scheduler\":\"round robin\"}]\n"
            "}\n");
  EXPECT_EQ(to_string(size_of(shrunk.scenario, shrunk.result)),
            "3 ranks, 3 steps, 0 faults, 0 choices");
  EXPECT_EQ(shrunk.result.wrong, "expected passes, saw mismatch by rank 2");
}

TEST(ScenarioShrink, KeepsTheFaultThatIsTheCauseAndLetsItStrikeEarlier) {
  const ShrunkScenario shrunk = shrink(R"({"fact": "x", "world_size": 8, "programs": {"*": [
      {"do": "repeat", "times": 5, "steps": [{"do": "barrier"}, {"do": "all_reduce"}]}]},
      "faults": ["slow rank=1 factor=2 delay=1us", "crash rank=6 operation=9"],
      "expect": {"outcome": "passes"}})");
  EXPECT_EQ(shrunk.scenario.world_size, 2);
  EXPECT_EQ(shrunk.result.told.verdict.outcome, Outcome::kLostRank);
  ASSERT_EQ(shrunk.scenario.faults.size(), 1u);
  EXPECT_EQ(shrunk.scenario.faults[0].kind, sim::FaultKind::kCrash);
  EXPECT_LE(shrunk.scenario.faults[0].number, 3u);
}

// Where ranks wait when messages are lost depends on how many they are.
TEST(ScenarioShrink, MakesAPartitionOfManyRanksOneOfTwo) {
  const ShrunkScenario shrunk = shrink(R"({"fact": "x", "world_size": 64, "programs": {"*": [
      {"do": "all_reduce", "label": "a"}, {"do": "all_reduce", "label": "b"},
      {"do": "repeat", "times": 10, "steps": [{"do": "barrier"}]}]},
      "faults": ["partition ranks=2,3,5,8,13,21,34,55 start=60us end=never"],
      "expect": {"outcome": "passes"}})");
  EXPECT_EQ(shrunk.result.told.verdict.outcome, Outcome::kDeadlock);
  EXPECT_EQ(shrunk.scenario.world_size, 2);
  EXPECT_EQ(to_string(size_of(shrunk.scenario, shrunk.result)),
            "2 ranks, 2 steps, 1 fault, 0 choices");
}

TEST(ScenarioShrink, KeepsWhatOnlySomeSchedulesBringAbout) {
  const ShrunkScenario shrunk = shrink(R"({"fact": "x", "world_size": 5,
      "schedules": [{"scheduler": "campaign"}], "expect": {"outcome": "passes"}, "programs": {"*": [
        {"do": "train", "batches": [1]}, {"do": "barrier"},
        {"do": "if", "ranks": "1", "then": [
          {"do": "save_checkpoint", "path": "/c", "shared": false}]},
        {"do": "if", "ranks": "3", "then": [
          {"do": "load_checkpoint", "path": "/c", "shared": false}]},
        {"do": "barrier"}]}})");
  ASSERT_EQ(shrunk.scenario.world_size, 2);
  EXPECT_EQ(shrunk.scenario.program_of(0).size(), 1u);
  EXPECT_EQ(shrunk.scenario.program_of(1).size(), 1u);
  EXPECT_EQ(shrunk.result.told.verdict.outcome, Outcome::kError);
  EXPECT_FALSE(shrunk.result.recorded->schedule.choices.empty());
}

// The reader lets others run so often that a random walk hardly ever has it come first.
TEST(ScenarioShrink, StartsFromTheScheduleThatFailed) {
  const std::string pause = R"({"do": "repeat", "times": 40, "steps": [
      {"do": "sleep", "for": "0 ns"}]},)";
  const ShrunkScenario shrunk = shrink(R"({"fact": "x", "world_size": 2,
      "schedules": [{"scheduler": "campaign"}], "expect": {"outcome": "passes"}, "programs": {
        "0": [{"do": "save_checkpoint", "path": "/c", "shared": false}],
        "1": [)" + pause + R"({"do": "load_checkpoint", "path": "/c", "shared": false}]}})");
  EXPECT_EQ(shrunk.result.told.verdict.outcome, Outcome::kError);
  EXPECT_EQ(to_string(size_of(shrunk.scenario, shrunk.result)).substr(0, 26),
            "2 ranks, 2 steps, 0 faults");
}

TEST(ScenarioShrink, TakesNoStaleExpectationForTheBug) {
  const ShrunkScenario shrunk = shrink(R"({"fact": "x", "world_size": 9, "programs": {
      "4": [{"do": "all_reduce", "value": 3, "expect": 9}],
      "*": [{"do": "all_reduce", "value": 1, "expect": 9}]}, "expect": {"outcome": "passes"}})");
  EXPECT_EQ(shrunk.scenario.world_size, 2);
  EXPECT_EQ(shrunk.result.told.verdict.outcome, Outcome::kWrongResult);
}

TEST(ScenarioEdit, KeptRanksAreRenumberedWhereverTheyStand) {
  const Json document = Json::parse(R"({"fact": "x", "world_size": 6, "ranks_per_node": 3,
      "programs": {"*": [{"do": "broadcast", "root": 4}, {"do": "reduce", "root": 1},
        {"do": "if", "ranks": "0,3-5", "then": [{"do": "send", "to": 5}]},
        {"do": "if", "ranks": "0", "then": [], "else": [{"do": "barrier"}]}]},
      "faults": ["crash rank=4 operation=2", "drop from=3 to=0 message=1",
        "partition ranks=0,3 start=0ns end=never"],
      "expect": {"outcome": "deadlock", "culprits": [0, 5]}})");
  EXPECT_EQ(keep_ranks(document, {3, 4}, LostPeer::kSkip),
            Json::parse(R"({"fact": "x", "world_size": 2, "ranks_per_node": 2,
      "programs": {"*": [{"do": "broadcast", "root": 1}, {"do": "reduce", "root": 0},
        {"do": "if", "ranks": "0-1", "then": [{"do": "send", "to": 0}]}, {"do": "barrier"}]},
      "faults": ["crash rank=1 operation=2", "partition ranks=0 start=0ns end=never"],
      "expect": {"outcome": "deadlock", "culprits": []}})"));
  const Json dropped = keep_ranks(document, {3, 4}, LostPeer::kDrop);
  EXPECT_EQ(dropped.at("programs").at("*").at(2).at("then"), Json::array());
}

TEST(ScenarioEdit, KeptRanksStayInTheirGroups) {
  const Json document = Json::parse(R"({"fact": "x", "world_size": 4,
      "groups": {"a": [3, 1], "b": [0, 2]},
      "programs": {"0,2": [{"do": "barrier", "group": "b"}],
        "1,3": [{"do": "broadcast", "root": 3, "group": "a"},
                {"do": "all_reduce", "group": "a", "expect": 6}]},
      "expect": {"outcome": "passes"}})");
  EXPECT_EQ(keep_ranks(document, {0, 1}, LostPeer::kSkip), Json::parse(R"({"fact": "x",
      "world_size": 2, "groups": {"a": [1], "b": [0]},
      "programs": {"0": [{"do": "barrier", "group": "b"}],
        "1": [{"do": "broadcast", "group": "a"}, {"do": "all_reduce", "group": "a"}]},
      "expect": {"outcome": "passes"}})"));
  EXPECT_EQ(keep_ranks(document, {1}, LostPeer::kSkip).at("groups"), Json::parse(R"({"a": [0]})"));
}

TEST(ScenarioShrink, KeepsTheGroupsThatTheVerdictNames) {
  const std::string big = R"({"fact": "x", "world_size": 6,
      "groups": {"rest": [0, 1, 4, 5], "model": [0, 1, 2, 3], "data": [3, 2, 1, 0]},
      "programs": {
        "0-2": [{"do": "barrier"}, {"do": "all_reduce", "count": 8, "group": "model"}],
        "3": [{"do": "barrier"}, {"do": "all_reduce", "count": 8, "group": "data"}],
        "*": [{"do": "barrier"}]},
      "expect": {"outcome": "passes"}})";
  const ShrunkScenario shrunk = shrink(big);
  EXPECT_EQ(size_of(shrunk.scenario, shrunk.result).steps, 2) << shrunk.text;
  EXPECT_EQ(shrunk.scenario.groups.size(), 2u) << shrunk.text;
  EXPECT_EQ(describe(shrunk.result.told.verdict), "mismatch");
}

TEST(ScenarioEdit, KeptRanksStayOnTheirNodes) {
  const Json document = Json::parse(R"({"fact": "x", "world_size": 5, "nodes": [0, 3],
      "programs": {"*": [{"do": "if", "local_ranks": "1", "then": [{"do": "barrier"}]}]},
      "expect": {"outcome": "passes"}})");
  EXPECT_EQ(keep_ranks(document, {1, 2, 4}, LostPeer::kSkip).at("nodes"), Json({3, 0, 0}));
  EXPECT_EQ(flatten(document, 10).at("programs"),
            Json::parse(R"({"0-1,4": [], "2-3": [{"do": "barrier"}]})"));
}

TEST(ScenarioEdit, AFlatScenarioRunsAsTheOneWithLoops) {
  const Scenario scenario = parse_scenario(kSkippedInOneTurn, "x.json");
  const Json flat = flatten(Json::parse(kSkippedInOneTurn), 100);
  EXPECT_EQ(flat.at("programs").size(), 2u);
  const ScenarioResult loops = run_scenario(scenario, {});
  const ScenarioResult lists = run_scenario(parse_scenario(to_text(flat), "x.json"), {});
  EXPECT_EQ(lists.told.report.digest, loops.told.report.digest);
  const Json too_long = flatten(Json::parse(kSkippedInOneTurn), 10);
  EXPECT_EQ(too_long, Json::parse(kSkippedInOneTurn));
}

TEST(ScenarioCommandShrink, WritesTheSmallScenarioAndItsReplayLine) {
  TemporaryFolder folder;
  const std::string big = folder.path() + "/big.json";
  const std::string small = folder.path() + "/small.json";
  std::ofstream(big) << kSkippedInOneTurn;
  const CommandResult told = run_command(scenario_command, {"--shrink", small, big});
  EXPECT_EQ(told.status, kExitFailed);
  EXPECT_NE(
      told.out.find(" runs from 16 ranks, 496 steps, 0 faults, 0 choices to 3 ranks, 3 steps, "
                    "0 faults, 0 choices\n{\n"),
      std::string::npos)
      << told.out;
  EXPECT_TRUE(told.out.ends_with(" '" + small + "'\n")) << told.out;
  EXPECT_EQ(run_command(scenario_command, {small}).status, kExitFailed);
  EXPECT_THROW(run_command(scenario_command, {"--shrink", small, big, big}), ConfigError);
}

TEST(ScenarioCommandShrink, HasNothingToShrinkWhereNothingIsWrong) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/x.json";
  std::ofstream(path) << R"({"fact": "x", "world_size": 1, "programs": {"*": []},
                             "expect": {"outcome": "passes"}})";
  const CommandResult told = run_command(scenario_command, {"--shrink", path + ".small", path});
  EXPECT_EQ(told.err, "nothing to shrink: no run is wrong\n");
  EXPECT_EQ(told.status, kExitHolds);
}

}  // namespace
}  // namespace ddproof::scenario
