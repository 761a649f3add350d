// The verify subcommand: what it prints, what it ends with, and what it refuses.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/api/error.h"
#include "cli/subcommand.h"
#include "tests/support/run_command.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

CommandResult verify(std::vector<std::string> arguments) {
  return run_command(verify_command, std::move(arguments));
}

std::string refusal(std::vector<std::string> arguments) {
  try {
    verify(std::move(arguments));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(Verify, RunsEveryPropertyAndSaysWhatHolds) {
  const CommandResult run =
      verify({"--backend", "sim", "--world-size", "3", "--cases", "5", "--seed", "7", "--json"});
  EXPECT_EQ(run.status, kExitHolds);
  const auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 8u);
  for (const auto& line : lines) {
    EXPECT_TRUE(line.at("holds").get<bool>()) << line;
    EXPECT_EQ(line.at("cases"), 5) << line;
    EXPECT_EQ(line.at("seed"), 7) << line;
    EXPECT_GE(line.at("seconds").get<double>(), 0) << line;
    EXPECT_FALSE(line.at("classes").empty()) << line;
  }
  EXPECT_EQ(lines[0].at("property"), "sampler-partition");
  EXPECT_GT(lines[7].at("measures").at("largest gradient error/bound").get<double>(), 0);
}

TEST(Verify, RunsOnlyWhatIsNamed) {
  const CommandResult run =
      verify({"--only", "barrier-orders", "--only", "sampler-partition", "--cases", "3"});
  EXPECT_EQ(run.status, kExitHolds);
  EXPECT_TRUE(run.out.starts_with("holds  sampler-partition: 3 cases in ")) << run.out;
  EXPECT_NE(run.out.find("\nholds  barrier-orders: 3 cases in "), std::string::npos) << run.out;
}

TEST(Verify, ComparesRanksWithOneDeviceOnRealData) {
  const CommandResult run =
      verify({"--world-size", "3", "--data", "/usr/share/datasets/fashion-mnist", "--model", "mlp",
              "--steps", "2", "--batch-size", "4", "--json"});
  EXPECT_EQ(run.status, kExitHolds);
  const auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 2u);
  for (const auto& line : lines) {
    EXPECT_TRUE(line.at("ranks_identical").get<bool>()) << line;
    EXPECT_EQ(line.at("elements"), 669706) << line;
    EXPECT_GT(line.at("gradient_error_over_bound").get<double>(), 0) << line;
    EXPECT_LE(line.at("gradient_error_over_bound").get<double>(), 1) << line;
  }
}

TEST(Verify, WritesTheEventsAndCallsOfTheLastRun) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return folder.path() + "/" + name; };
  const CommandResult run =
      verify({"--only", "all-reduce-exact", "--cases", "4", "--trace", path("t.json"), "--log",
              path("t.log"), "--flight-recorder", path("calls")});
  EXPECT_EQ(run.status, kExitHolds);
  EXPECT_FALSE(nlohmann::json::parse(std::ifstream(path("t.json"))).empty());
  EXPECT_FALSE(
      nlohmann::json::parse(std::ifstream(path("calls/rank_0.json"))).at("entries").empty());
  std::ifstream log(path("t.log"));
  std::string line;
  EXPECT_TRUE(std::getline(log, line));
  EXPECT_EQ(line, "0 ns rank 0 spawn 1 main");
}

TEST(Verify, SaysThatPropertiesWithoutRanksLeaveNothingToWrite) {
  const CommandResult run = verify({"--only", "sampler-partition", "--log", "never made"});
  EXPECT_EQ(run.status, kExitHolds);
  EXPECT_EQ(run.err, "ddproof verify: no ranks ran last, so there is nothing to write to files\n");
}

TEST(Verify, RefusesAPropertyThatItDoesNotKnow) {
  EXPECT_EQ(refusal({"--only", "barrier-order"}),
            "--only is \"barrier-order\", allowed are sampler-partition, stream-partition, "
            "distinct-streams, "
            "barrier-orders, guard-works-first, all-reduce-exact, collectives-exact, "
            "equals-one-device; did you mean \"barrier-orders\"?");
}

TEST(Verify, RefusesMoreStepsThanTheEpochHas) {
  EXPECT_EQ(refusal({"--data", "/usr/share/datasets/fashion-mnist", "--steps", "2000"}),
            "steps is 2000; 60000 samples in batches of 16 on each of 4 ranks give at most 937");
}

TEST(Verify, RefusesManyRanksOnSingle) {
  EXPECT_EQ(refusal({"--backend", "single", "--world-size", "4"}),
            "--world-size is 4, but --backend single has 1 rank; leave out --world-size, or choose "
            "another backend");
  EXPECT_EQ(verify({"--backend", "single", "--cases", "1", "--only", "sampler-partition"}).status,
            kExitHolds);
}

TEST(Verify, RefusesFlagsThatWouldHaveNoEffect) {
  for (const std::string flag : {"--only", "--cases"}) {
    EXPECT_EQ(refusal({"--data", "d", flag, "1"}),
              flag + " is of the generated cases, which --data replaces; leave out one of them");
  }
  for (const std::string flag : {"--steps", "--batch-size"}) {
    EXPECT_EQ(refusal({flag, "2"}),
              flag + " is of the training on --data; add --data, or leave out " + flag);
  }
  EXPECT_EQ(refusal({"--model", "mlp"}),
            "--model is of the training on --data; add --data, or leave out --model");
  EXPECT_EQ(refusal({"--format", "idx"}),
            "--format is of the training on --data; add --data, or leave out --format");
}

TEST(Verify, ReadsRcParams) {
  setenv("RC_PARAMS", "seed=9 max_success=4", 1);
  const CommandResult run = verify({"--only", "sampler-partition", "--json"});
  setenv("RC_PARAMS", "sede=9", 1);
  EXPECT_EQ(refusal({}),
            "RC_PARAMS sede: unknown key; known are seed, max_success, max_size, noshrink");
  unsetenv("RC_PARAMS");
  const auto lines = json_lines(run.out);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("seed"), 9);
  EXPECT_EQ(lines[0].at("cases"), 4);
}

}  // namespace
}  // namespace ddproof
