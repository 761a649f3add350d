// Exploring scenarios: what schedules and drawn faults find, what they claim when they find
// nothing, and that what failed is run again from its line, and nothing else is.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/api/error.h"
#include "cli/subcommand.h"
#include "properties/scenario/explore.h"
#include "properties/scenario/fault_shape.h"
#include "properties/scenario/parse.h"
#include "tests/support/run_command.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

using scenario::parse_scenario;
using scenario::RecordedRun;
using scenario::ScenarioResult;

// Rank 1 loads what rank 0 saves when the barrier ends: whether it is there is a matter of
// schedules. First come, first served, it is.
std::string race(const std::string& schedule, int batch = 1) {
  return R"({"fact": "a load that races with a save", "world_size": 3,
  "schedules": [)" +
         schedule + R"(], "expect": {"outcome": "passes"}, "programs": {"*": [
    {"do": "train", "batches": [)" +
         std::to_string(batch) + R"(]},
    {"do": "barrier"},
    {"do": "if", "ranks": "0", "then": [
      {"do": "save_checkpoint", "path": "/c", "shared": false}]},
    {"do": "if", "ranks": "1", "then": [
      {"do": "load_checkpoint", "path": "/c", "shared": false}]},
    {"do": "barrier"}]}})";
}

// Four ranks, two of whose collectives are checked for their values.
std::string under_faults(const std::string& members) {
  return R"({"fact": "x", "world_size": 4, )" + members + R"(, "programs": {"*": [
    {"do": "all_reduce", "count": 4, "expect": 10}, {"do": "barrier"}]}})";
}

ScenarioResult explore(const std::string& text) {
  return run_scenario(parse_scenario(text, "x.json"), {});
}

std::string refusal(const std::string& text, const RecordedRun& recorded) {
  try {
    replay_scenario(parse_scenario(text, "x.json"), recorded, {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(const std::string& recorded) {
  try {
    scenario::parse_recorded_run(recorded);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// The first step reduces one bucket when backward is over; so what it takes is the sum.
TEST(ScenarioOfTraining, TakesWhatItComputesBesideWhatItSends) {
  const auto time_of = [](const std::string& compute, int world_size) {
    return explore(R"({"fact": "x", "world_size": )" + std::to_string(world_size) + compute +
                   R"(, "checked": false, "expect": {"outcome": "passes"},
                       "programs": {"*": [{"do": "train", "batches": [2]}]}})")
        .told.report.virtual_time;
  };
  const std::string slow = R"(, "compute": {"flops_per_second": 1000000000})";
  // Products of 2 samples, 4 features, 8 hidden and 3 classes: forward, and backward to parameters
  // and inputs but for the first layer's.
  const sim::Time compute = 2 * 2 * (2 * 4 * 8 + 3 * 8 * 3);
  EXPECT_EQ(time_of("", 1), 0);
  EXPECT_EQ(time_of(slow, 1), compute);
  EXPECT_EQ(time_of(slow, 4), time_of("", 4) + compute);
}

TEST(ScenarioOfWholeCollectives, TakesAsLongInFewerEvents) {
  const auto of = [](const std::string& fidelity, const std::string& payload) {
    return explore(R"({"fact": "x", "world_size": 64, "fidelity": ")" + fidelity +
                   R"(", "payload": ")" + payload + R"(", "expect": {"outcome": "passes"},
      "programs": {"*": [{"do": "repeat", "times": 2, "steps": [
        {"do": "all_reduce", "count": 5000}]}]}})");
  };
  const ScenarioResult messages = of("messages", "real");
  for (const std::string payload : {"real", "sizes"}) {
    const ScenarioResult whole = of("whole", payload);
    EXPECT_EQ(whole.wrong, "");
    EXPECT_EQ(whole.told.report.virtual_time, messages.told.report.virtual_time);
    EXPECT_EQ(whole.told.report.messages, messages.told.report.messages);
    EXPECT_LT(whole.told.report.events, messages.told.report.events);
  }
}

TEST(ScenarioProbes, AreCountedAndThoseThatNoRunHitAreNamed) {
  const std::string few = R"("programs": {"*": [{"do": "sampler", "length": 2}]}, )"
                          R"("expect": {"outcome": "passes"}, "probes": [)";
  const auto with = [&](const std::string& probes) {
    return explore(R"({"fact": "x", "world_size": 3, )" + few + probes + "]}");
  };
  EXPECT_EQ(with(R"("padding with more ranks than samples")").wrong, "");
  const ScenarioResult missed =
      with(R"("padding with more ranks than samples", "hang inside barrier")");
  EXPECT_EQ(missed.wrong, "no run hit the probe \"hang inside barrier\"");
  EXPECT_EQ(missed.probes.at("padding with more ranks than samples"), 3u);
}

TEST(ScenarioProbes, TellInWhichCallAFaultStruck) {
  for (const std::string fate : {"crash", "hang"}) {
    const ScenarioResult struck = explore(
        R"({"fact": "x", "world_size": 2, "programs": {"*": [{"do": "broadcast", "count": 9}]},
            "faults": [")" +
        fate + R"( rank=1 operation=3"], "probes": [")" + fate + R"( inside broadcast"],
            "expect": {"outcome": ["deadlock", "lost rank"]}})");
    EXPECT_EQ(struck.wrong, "");
  }
}

class ScenarioExplore : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_.path() + "/" + name).rdbuf();
    return text.str();
  }

  TemporaryFolder folder_;
};

class Schedules : public ::testing::TestWithParam<const char*> {};

TEST_P(Schedules, FindARaceAndReplayItBitForBit) {
  const std::string text = race(GetParam());
  const ScenarioResult found = explore(text);
  ASSERT_EQ(found.wrong, "expected passes, saw error by rank 1");
  ASSERT_TRUE(found.recorded);
  const auto recorded = scenario::parse_recorded_run(to_string(*found.recorded));
  EXPECT_EQ(recorded, *found.recorded);
  const ScenarioResult again = replay_scenario(parse_scenario(text, "x.json"), recorded, {});
  EXPECT_EQ(again.wrong, found.wrong);
  EXPECT_EQ(again.told.report.digest, found.told.report.digest);
  EXPECT_EQ(again.runs, 1u);
  EXPECT_LE(recorded.schedule.choices.size(), 20u) << to_string(recorded);
}

INSTANTIATE_TEST_SUITE_P(Scenario, Schedules,
                         ::testing::Values(R"({"scheduler": "random", "runs": 100})",
                                           R"({"scheduler": "pct", "runs": 100, "depth": 2})",
                                           R"({"scheduler": "exhaustive"})",
                                           R"({"scheduler": "campaign"})"));

TEST_F(ScenarioExplore, ASearchProvesOrSaysThatItDidNot) {
  const std::string all_reduce = R"("expect": {"outcome": "passes"}, "schedules": [
      {"scheduler": "exhaustive", "runs": 2000}])";
  const std::string path = write("x.json", under_faults(all_reduce));
  const CommandResult proof = run_command(scenario_command, {path});
  EXPECT_EQ(proof.status, kExitHolds);
  EXPECT_NE(proof.out.find("\n  exhaustive: "), std::string::npos) << proof.out;
  // Three ranks that all write one file: more orders than that.
  const ScenarioResult cut = explore(R"({"fact": "x", "world_size": 3, "schedules": [
      {"scheduler": "exhaustive", "runs": 2}], "expect": {"outcome": "passes"}, "programs": {"*": [
      {"do": "save_checkpoint", "path": "/c{rank}", "shared": false}]}})");
  EXPECT_EQ(cut.wrong, "the search ended after 2 runs without all orders; raise its \"runs\"");
  EXPECT_FALSE(cut.recorded);
}

TEST_F(ScenarioExplore, PctSaysWhatARunHitsAndWhatAllMissed) {
  const std::string path = write("x.json", under_faults(R"("expect": {"outcome": "passes"},
      "schedules": [{"scheduler": "pct", "runs": 10, "depth": 1}, {"scheduler": "round robin"}])"));
  const CommandResult told = run_command(scenario_command, {path});
  EXPECT_NE(
      told.out.find("  pct: P(missed bug of depth <= 1) <= 0.42, a run hits it with >= 0.083; "
                    "10 runs, at most 12 fibers and "),
      std::string::npos)
      << told.out;
  const CommandResult json = run_command(scenario_command, {"--json", path});
  const auto schedules = nlohmann::json::parse(json.out).at("schedules");
  EXPECT_EQ(schedules.at(0).at("bounds").at(0).at("depth"), 1);
  EXPECT_NEAR(schedules.at(0).at("bounds").at(0).at("hit_probability"), 1.0 / 12, 1e-12);
  EXPECT_EQ(schedules.at(1).at("scheduler"), "round robin");
}

TEST_F(ScenarioExplore, FaultsAreDrawnAnewForEachSeed) {
  const std::string text = under_faults(R"("drawn_faults": "0-99", "expect": {"outcome": [
      "passes", "deadlock", "lost rank", "mismatch", "wrong result", "error"]})");
  const ScenarioResult all = explore(text);
  EXPECT_EQ(all.wrong, "");
  EXPECT_EQ(all.runs, 100u);
  int kinds = 0;
  for (const std::uint64_t struck : all.faults_struck) kinds += struck > 0 ? 1 : 0;
  EXPECT_GE(kinds, 8);  // of the eleven that need no disk
  EXPECT_GT(all.outcomes[static_cast<std::size_t>(scenario::Outcome::kLostRank)], 0u);
  EXPECT_GT(all.outcomes[static_cast<std::size_t>(scenario::Outcome::kPasses)], 0u);
}

// One save, by rank 0: of the disk all that is drawn is among its calls.
TEST_F(ScenarioExplore, DrawnFaultsOfTheDiskStrikeTheCallsThatARunMakes) {
  const std::string text = R"({"fact": "x", "world_size": 4, "drawn_faults": "0-99",
      "programs": {"*": [
      {"do": "save_checkpoint", "path": "/c"}]}, "expect": {"outcome": ["passes", "deadlock",
      "lost rank", "mismatch", "error"]}})";
  const sim::FaultShape shape = scenario::measure_shape(parse_scenario(text, "x.json"), 0);
  ASSERT_EQ(shape.disk.size(), 4u);
  EXPECT_EQ(shape.disk[0], (sim::DiskCalls{.changes = 6, .writes = 1, .syncs = 2}));
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(shape.disk[rank], sim::DiskCalls{});
  const ScenarioResult all = explore(text);
  EXPECT_EQ(all.wrong, "");
  for (const sim::FaultKind kind : {sim::FaultKind::kShortWrite, sim::FaultKind::kFullDisk,
                                    sim::FaultKind::kFailedSync, sim::FaultKind::kPowerCut}) {
    // A quarter of the runs has the kind; in some of these a rank is lost before.
    EXPECT_GE(all.faults_struck[static_cast<std::size_t>(kind)], 8u) << to_string(kind);
  }
}

TEST_F(ScenarioExplore, AFailureUnderDrawnFaultsIsReplayedFromTheLineThatIsPrinted) {
  const std::string path = write("with space.json", under_faults(R"("drawn_faults": "0-99",
      "expect": {"outcome": ["passes", "deadlock", "lost rank"]})"));
  const CommandResult found = run_command(scenario_command, {"--json", path});
  ASSERT_EQ(found.status, kExitFailed);
  const auto json = nlohmann::json::parse(found.out);
  EXPECT_EQ(json.at("faults"), json.at("faults_fired"));  // idle ones are left out
  const std::string line = json.at("replay");
  EXPECT_TRUE(line.ends_with(" '" + path + "'")) << line;
  const auto word_after = [&line](const std::string& flag, char end) {
    const auto at = line.find(flag) + flag.size();
    return line.substr(at, line.find(end, at) - at);
  };
  const std::string schedule = word_after("--schedule ", ' ');
  const std::string faults = word_after("--faults '", '\'');
  const CommandResult again =
      run_command(scenario_command, {"--json", "--schedule", schedule, "--faults", faults, path});
  EXPECT_EQ(again.status, kExitFailed);
  EXPECT_EQ(nlohmann::json::parse(again.out).at("digest"), json.at("digest"));
  EXPECT_THROW(run_command(scenario_command, {"--schedule", schedule, path}), ConfigError);
}

TEST_F(ScenarioExplore, ATextThatIsNoRecordedRunIsRefused) {
  const ScenarioResult found = explore(race(R"({"scheduler": "campaign"})"));
  const std::string text = to_string(*found.recorded);
  EXPECT_EQ(refusal(text), "accepted");
  EXPECT_EQ(refusal("r2" + text.substr(2)),
            "schedule \"r2" + text.substr(2, 38) +
                "...\" has version \"r2\"; this build replays version \"r1\"");
  EXPECT_EQ(refusal("s1.3.4..f2438fc9"),
            "schedule \"s1.3.4..f2438fc9\" is a schedule alone; give the whole text that a failing "
            "run prints after --schedule");
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_NE(refusal(text.substr(0, length)), "accepted") << length;
    std::string damaged = text;
    damaged[length] = damaged[length] == '1' ? '2' : '1';
    EXPECT_NE(refusal(damaged), "accepted") << length;
  }
  EXPECT_NE(refusal(text.substr(0, 30)).find("cut short"), std::string::npos);
  EXPECT_NE(refusal(text.substr(0, text.size() - 3)).find("cut short"), std::string::npos);
}

TEST_F(ScenarioExplore, ARunOfAnotherProgramIsRefused) {
  const std::string schedule = R"({"scheduler": "campaign"})";
  const RecordedRun recorded = *explore(race(schedule)).recorded;
  EXPECT_EQ(refusal(race(R"({"scheduler": "random"})"), recorded), "accepted");
  EXPECT_EQ(
      refusal(race(schedule, 2), recorded),
      "the schedule was recorded with another x.json, a file of another name or other faults; "
      "replay it with the file and the --faults it was made with");
  RecordedRun other = recorded;
  other.digest ^= 1;
  EXPECT_TRUE(refusal(race(schedule), other)
                  .ends_with("replay it with the version of ddproof it was made with"));
  other = recorded;
  other.schedule.choices.front().count += 1;
  EXPECT_TRUE(refusal(race(schedule), other).starts_with("schedule of another run: decision "));
}

TEST_F(ScenarioExplore, FlagsThatDoNotGoTogetherAreRefused) {
  const std::string path = write("x.json", race(R"({"scheduler": "campaign"})"));
  const std::string text = to_string(*explore(race(R"({"scheduler": "campaign"})")).recorded);
  for (const char* flag : {"--faults", "--trace", "--log"}) {
    EXPECT_THROW(run_command(scenario_command, {flag, "x", path, path}), ConfigError) << flag;
  }
  EXPECT_THROW(run_command(scenario_command, {"--schedule", text, "--seed", "1", path}),
               ConfigError);
  EXPECT_THROW(run_command(scenario_command, {"--faults", "crash rank=9 operation=1", path}),
               ConfigError);
  EXPECT_THROW(run_command(scenario_command, {"--faults", "crash", path}), ConfigError);
}

TEST_F(ScenarioExplore, LogsAndTracesAreOfTheRunThatIsTold) {
  const std::string path = write("x.json", race(R"({"scheduler": "campaign"})"));
  const auto write_log = [&](const char* name, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"--json", "--log", folder_.path() + "/" + name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back(path);
    return nlohmann::json::parse(run_command(scenario_command, arguments).out);
  };
  const auto found = write_log("found.log", {"--trace", folder_.path() + "/trace.json"});
  EXPECT_NE(read("found.log").find(" activity "), std::string::npos);
  const std::string line = found.at("replay");
  const auto at = line.find("r1.");
  write_log("again.log", {"--schedule", line.substr(at, line.find(' ', at) - at)});
  EXPECT_EQ(read("again.log"), read("found.log"));
  const auto trace = nlohmann::json::parse(read("trace.json"));
  EXPECT_GT(trace.at("traceEvents").size(), 100u);

  const std::string one = folder_.path() + "/found.log";
  const std::string other = folder_.path() + "/again.log";
  EXPECT_EQ(run_command(diff_command, {one, other}).out, "no difference\n");
  EXPECT_EQ(run_command(diff_command, {one, other}).status, kExitHolds);
  const std::string first_line = read("found.log").substr(0, read("found.log").find('\n') + 1);
  const std::string cut = write("cut.log", first_line);
  const CommandResult differs = run_command(diff_command, {"--context", "1", one, cut});
  EXPECT_EQ(differs.status, kExitFailed);
  EXPECT_TRUE(differs.out.starts_with("--- " + one + "\n+++ " + cut +
                                      "\nfirst difference in line 2:\n  " + first_line + "- "))
      << differs.out;
  EXPECT_TRUE(differs.out.ends_with("+ (the log ends here)\n"));
  EXPECT_THROW(run_command(diff_command, {one}), ConfigError);
}

TEST_F(ScenarioExplore, AnOutputThatCannotBeWrittenIsAnError) {
  const std::string path = write("x.json", race(R"({"scheduler": "campaign"})"));
  EXPECT_THROW(run_command(scenario_command, {"--log", folder_.path() + "/no/x.log", path}),
               DataError);
  EXPECT_THROW(run_command(scenario_command, {"--trace", "/dev/full", path}), DataError);
}

}  // namespace
}  // namespace ddproof
