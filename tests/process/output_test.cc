// What the program does when its output or its errors have nowhere to go, for every subcommand.
#include <gtest/gtest.h>

#include <csignal>
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
