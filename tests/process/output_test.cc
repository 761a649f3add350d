// What the program does when its output or its errors have nowhere to go, for every subcommand.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process/idx_files.h"
#include "tests/process/launched.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

const std::string kProgram = "'" DDPROOF_PROGRAM "' ";

// Runs `command` in a shell, which the redirections belong to.
std::vector<std::string> shell(const std::string& command) { return {"sh", "-c", command}; }

class Output : public testing::Test {
 protected:
  Output() { write_small_idx_dataset(folder_, 40); }

  // A short run of each subcommand that prints something.
  std::vector<std::string> commands() const {
    return {kProgram + "train --max-steps 1 --data '" + folder_ + "'",
            kProgram + "run --standalone -- echo a", kProgram + "sampler --length 5",
            kProgram + "verify --only sampler-partition --cases 1", kProgram + "backends"};
  }

  const TemporaryFolder own_;
  const std::string& folder_ = own_.path();
};

TEST_F(Output, OnAFullDiskIsSaidAndFails) {
  for (const std::string& command : commands()) {
    Launched run(shell(command + " > /dev/full"));
    EXPECT_EQ(run.wait(), 3) << command;
    const bool launcher = command.find(" run ") != std::string::npos;
    EXPECT_EQ(run.err(), launcher
                             ? "ddproof run: standard output cannot be written (No space left "
                               "on device); what the workers print there is lost\n"
                             : "ddproof: the output could not be written (is the disk full?)\n")
        << command;
  }
}

TEST_F(Output, ErrorsOnAFullDiskMakeTheLauncherFail) {
  Launched run(shell(kProgram + "run --standalone -- sh -c 'echo a >&2; echo b' 2> /dev/full"));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_EQ(run.out(), "[rank 0] b\n");
}

TEST_F(Output, GoesNowhereWhenItIsClosed) {
  for (const std::string& command : commands()) {
    Launched run(shell(command + " >&-"));
    EXPECT_EQ(run.wait(), 0) << command;
    EXPECT_EQ(run.err(), "") << command;
  }
}

TEST_F(Output, IsWholeWhenErrorsAreClosed) {
  for (const std::string& command : commands()) {
    Launched run(shell(command + " 2>&- <&-"));
    EXPECT_EQ(run.wait(), 0) << command;
    EXPECT_NE(run.out(), "") << command;
  }
}

TEST_F(Output, WhoseReaderIsGoneEndsAProgramAndNotTheLauncher) {
  for (const std::string& command : commands()) {
    Launched run(shell("exec " + command), {.output_has_reader = false});
    const bool launcher = command.find(" run ") != std::string::npos;
    EXPECT_EQ(run.wait(), launcher ? 0 : 128 + SIGPIPE) << command;
    EXPECT_EQ(run.err(), "") << command;
  }
}

// What a limit on file sizes ends must say so, and leave no half of a checkpoint.
TEST_F(Output, PastTheFileSizeLimitIsAnError) {
  Launched run(shell("ulimit -f 1; " + kProgram + "train --data '" + folder_ +
                     "' --batch-size 10 --checkpoint-dir '" + folder_ + "/limited'"));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_NE(run.err().find("File too large"), std::string::npos) << run.err();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/limited"));
}

// A torn last line, and steps that the checkpoint does not know, are no part of the run.
TEST_F(Output, MetricsOfAResumedRunAreOneCurve) {
  const std::string train = kProgram + "train --data '" + folder_ +
                            "' --batch-size 10 --checkpoint-dir '" + folder_ +
                            "/checkpoints' --metrics '" + folder_ + "/metrics' ";
  ASSERT_EQ(Launched(shell(train + "--max-steps 2")).wait(), 0);
  std::ofstream(folder_ + "/metrics", std::ios::app) << R"({"step":3,"epoch":0,"loss":9})"
                                                     << "\n"
                                                     << R"({"step":4,"epo)";
  ASSERT_EQ(Launched(shell(train + "--resume")).wait(), 0);
  std::ifstream metrics(folder_ + "/metrics");
  std::vector<int> steps;
  for (std::string line; std::getline(metrics, line);) {
    steps.push_back(nlohmann::json::parse(line).at("step"));
    EXPECT_NE(nlohmann::json::parse(line).at("loss"), 9);
  }
  EXPECT_EQ(steps, (std::vector<int>{1, 2, 3, 4}));
}

TEST_F(Output, AWarningDoesNotGetIntoTheMetrics) {
  const std::string train = kProgram + "train --data '" + folder_ +
                            "' --batch-size 10 --checkpoint-dir '" + folder_ +
                            "/checkpoints' --checkpoint-every 1 ";
  ASSERT_EQ(Launched(shell(train + "--max-steps 2")).wait(), 0);
  std::ofstream(folder_ + "/checkpoints/checkpoint.safetensors") << "damaged";
  Launched resumed(shell(train + "--resume --metrics '" + folder_ + "/metrics' 2>&-"));
  EXPECT_EQ(resumed.wait(), 0);
  std::ifstream metrics(folder_ + "/metrics");
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  EXPECT_EQ(lines, 3);  // steps 2 to 4
}

}  // namespace
}  // namespace ddproof
