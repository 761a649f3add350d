// `ddproof sampler`: its output, and what it refuses.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/api/error.h"
#include "backends/local/os_runtime.h"
#include "cli/subcommand.h"
#include "simulator/sanitizers.h"
#include "tests/support/run_command.h"

namespace ddproof {
namespace {

using Words = std::vector<std::string>;

std::string output_of(const Words& arguments) {
  const CommandResult result = run_command(sampler_command, arguments);
  EXPECT_EQ(result.status, kExitHolds);
  EXPECT_EQ(result.err, "");
  return result.out;
}

std::string error_of(const Words& arguments) {
  try {
    output_of(arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SamplerCommand, PrintsALineForEachRank) {
  EXPECT_EQ(output_of({"--length", "10", "--world-size", "3"}),
            "rank 0: 4 5 0 2\nrank 1: 1 3 8 4\nrank 2: 7 9 6 1\n");
  EXPECT_EQ(output_of({"--length", "10", "--world-size", "3", "--drop-last", "--rank", "1"}),
            "rank 1: 1 3 8\n");
  EXPECT_EQ(output_of({"--length", "3", "--no-shuffle"}), "rank 0: 0 1 2\n");
  EXPECT_EQ(output_of({"--length", "0"}), "rank 0: \n");
}

TEST(SamplerCommand, SeedAndEpochChooseTheOrder) {
  const std::string order = output_of({"--length", "50", "--seed", "3", "--epoch", "4"});
  EXPECT_EQ(order, output_of({"--length", "50", "--seed", "7"}));
  EXPECT_NE(order, output_of({"--length", "50", "--seed", "3"}));
}

TEST(SamplerCommand, JsonHoldsSettingsAndLists) {
  const Words arguments{"--length", "10", "--world-size", "3",     "--seed", "1",
                        "--epoch",  "2",  "--no-shuffle", "--json"};
  EXPECT_EQ(nlohmann::json::parse(output_of(arguments)), nlohmann::json::parse(R"({
    "length": 10, "world_size": 3, "seed": 1, "epoch": 2, "shuffle": false, "drop_last": false,
    "num_samples": 4, "total_size": 12, "ranks": [
      {"rank": 0, "indices": [0, 3, 6, 9]},
      {"rank": 1, "indices": [1, 4, 7, 0]},
      {"rank": 2, "indices": [2, 5, 8, 1]}]})"));
}

TEST(SamplerCommand, JsonOfMoreRanksThanSamples) {
  const auto json = nlohmann::json::parse(
      output_of({"--length", "1", "--world-size", "2", "--rank", "1", "--drop-last", "--json"}));
  EXPECT_EQ(json["ranks"], nlohmann::json::parse(R"([{"rank": 1, "indices": []}])"));
}

TEST(SamplerCommand, PrintsNothingWhenMemoryDoesNotDo) {
#if defined(DDPROOF_SIM_ASAN) || defined(DDPROOF_SIM_TSAN)
  GTEST_SKIP() << "the sanitizer ends the program";
#endif
  OsRuntime runtime;
  std::ostringstream out;
  std::ostringstream err;
  CommandContext context{runtime, {"--length", "1099511627776", "--world-size", "2"}, out, err};
  try {
    sampler_command(context);
    FAIL() << "no error";
  } catch (const ResourceError& error) {
    EXPECT_STREQ(error.what(),
                 "sampler length 1099511627776: not enough memory for its order; lower the length");
  }
  EXPECT_EQ(out.str(), "");
}

TEST(SamplerCommand, RefusesBadSettings) {
  EXPECT_EQ(error_of({}), "--length is missing; pass the number of samples");
  EXPECT_EQ(error_of({"--length", "3", "--world-size", "3", "--rank", "3"}),
            "sampler rank 3: expected 0 to 2 (3 replicas)");
  for (const Words& bad :
       {Words{"--length", "-1"}, Words{"--length", "many"},
        Words{"--length", "3", "--world-size", "0"}, Words{"--length", "3", "--rank", "-1"},
        Words{"--length", "3", "--seed", "1.5"}, Words{"--length", "3", "--epoch", "-1"},
        Words{"--length", "3", "--shufle"}, Words{"--length"}}) {
    EXPECT_NE(error_of(bad), "") << bad.back();
  }
}

}  // namespace
}  // namespace ddproof
