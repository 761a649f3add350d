// The bench subcommand: nccl-tests' columns, and in the simulator the closed forms behind them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "cli/subcommand.h"
#include "properties/bandwidth.h"
#include "simulator/network.h"
#include "tests/support/run_command.h"

namespace ddproof {
namespace {

CommandResult bench(std::vector<std::string> arguments) {
  return run_command(bench_command, std::move(arguments));
}

std::vector<nlohmann::json> rows_of(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const CommandResult run = bench(std::move(arguments));
  EXPECT_EQ(run.status, kExitHolds) << run.err;
  std::vector<nlohmann::json> rows;
  std::istringstream in(run.out);
  for (std::string line; std::getline(in, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

TEST(Bench, FactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Op::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kReduce, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Op::kSend, 4), 1);
}

TEST(Bench, EveryOperationIsRightAtEverySize) {
  std::vector<std::string> arguments = {"--world-size", "3", "-b", "0", "-e", "5000", "-n", "2"};
  std::vector<std::string> ops = {"all_reduce", "broadcast",  "reduce",   "all_gather",    "gather",
                                  "scatter",    "all_to_all", "sendrecv", "reduce_scatter"};
  for (const std::string& op : ops) arguments.insert(arguments.end(), {"--op", op});
  const auto rows = rows_of(arguments);
  ASSERT_EQ(rows.size(), ops.size() * 7);  // 0, 4, 16, ..., 4096
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("size").get<std::int64_t>(), 4 * row.at("count").get<std::int64_t>()) << row;
  }
  EXPECT_EQ(rows.back().at("op"), "reduce_scatter");
  EXPECT_EQ(rows.back().at("size"), 4092);  // 341 elements for each of 3 ranks
}

// Rows tell virtual time: twice the same.
TEST(Bench, SimulatedRowsAreTheSameEveryTime) {
  const std::vector<std::string> arguments = {"--world-size", "4",          "--op", "all_reduce",
                                              "--op",         "all_gather", "-e",   "65536"};
  EXPECT_EQ(rows_of(arguments), rows_of(arguments));
}

// A ring takes n - 1 steps of 1 / n of the bytes through a port, and at most a latency for each:
// neighbouring calls overlap.
TEST(Bench, ASimulatedCallTakesWhatTheModelSays) {
  constexpr std::int64_t kBytes = 1 << 20;
  const auto rows = rows_of({"--world-size", "4", "--op", "all_gather", "-b",
                             std::to_string(kBytes), "-e", std::to_string(kBytes), "-n", "3"});
  ASSERT_EQ(rows.size(), 1u);
  const sim::LinkClass link = sim::NetworkOptions().same_node;
  const double moving = 3 * static_cast<double>(link.transfer_time(kBytes / 4));
  const double time = rows[0].at("time_us").get<double>() * 1e3;
  EXPECT_GE(time, moving);
  EXPECT_LE(time, moving + 3 * static_cast<double>(link.latency));
  EXPECT_DOUBLE_EQ(rows[0].at("algbw_gbps").get<double>(), kBytes / time);
  EXPECT_DOUBLE_EQ(rows[0].at("busbw_gbps").get<double>(), 0.75 * kBytes / time);
}

TEST(Bench, PrintsATableForPeople) {
  const CommandResult run = bench({"--world-size", "2", "-b", "8", "-e", "8"});
  EXPECT_EQ(run.status, kExitHolds);
  EXPECT_NE(run.out.find("#       size"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("           8            2     all_reduce    float    sum"),
            std::string::npos)
      << run.out;
}

TEST(Bench, RefusesWhatMakesNoSense) {
  const auto refusal = [](std::vector<std::string> arguments) -> std::string {
    try {
      bench(std::move(arguments));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({"--op", "allreduce"}),
            "--op is \"allreduce\", allowed are all_reduce, broadcast, reduce, all_gather, gather, "
            "reduce_scatter, scatter, all_to_all, sendrecv; did you mean \"all_reduce\"?");
  EXPECT_EQ(refusal({"--device", "cuda"}),
            "--device cuda: the backend sim sends host memory alone; use --backend nccl, or "
            "--device cpu");
  EXPECT_EQ(
      refusal({"--math", "fast"}),
      "--math is of CUDA devices, and ranks compute on the CPU; leave it out, or add --device "
      "cuda");
  EXPECT_EQ(refusal({"-b", "100", "-e", "10"}), "--max-bytes is 10, less than --min-bytes, 100");
}

}  // namespace
}  // namespace ddproof
