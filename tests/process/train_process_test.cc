// `ddproof train` as its users see it: alone, on simulated ranks, and as real processes that die.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "simulator/sanitizers.h"
#include "tests/process/free_port.h"
#include "tests/process/idx_files.h"
#include "tests/process/launched.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

const LaunchedOptions kNotLaunched = {.environment = {"RANK", "LOCAL_RANK", "WORLD_SIZE",
                                                      "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                                                      "MASTER_PORT"}};

// A folder with a data set of 120 images of 8x8 pixels, removed at the end.
class TrainProgram : public testing::Test {
 protected:
  TrainProgram() { write_small_idx_dataset(folder_, 120); }

  Words train(const Words& flags) const {
    Words words{DDPROOF_PROGRAM, "train", "--data", folder_};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }
  Words launched(int ranks, const Words& flags) const {
    Words words =
        run_command_line({"--nproc-per-node", std::to_string(ranks), "--master-port", "0", "--"});
    const Words program = train(flags);
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }

  const TemporaryFolder own_;
  const std::string& folder_ = own_.path();
};

// The JSON in the program's output, behind a rank's prefix or not.
json result_of(const std::string& out) { return json::parse(out.substr(out.find('{'))); }

int count_of(const std::string& part, const std::string& text) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<pid_t> pids_in(const std::string& text) {
  std::vector<pid_t> pids;
  for (const std::string& line : lines_of(text)) {
    const auto at = line.find("pid ");
    if (at != std::string::npos) pids.push_back(static_cast<pid_t>(std::stol(line.substr(at + 4))));
  }
  return pids;
}

TEST_F(TrainProgram, ProcessesAndSimulatedRanksEndWithTheSameBits) {
  const Words flags{"--json", "--epochs", "2", "--global-batch-size", "12"};
  Words simulated = flags;
  simulated.insert(simulated.end(), {"--backend", "sim", "--world-size", "3"});
  Words over_tcp = flags;
  const std::string calls = folder_ + "/calls";
  over_tcp.insert(over_tcp.end(), {"--backend", "gloo", "--flight-recorder", calls});
  Launched sim(train(simulated), kNotLaunched);
  ASSERT_EQ(sim.wait(), 0) << sim.err();
  Launched gloo(launched(3, over_tcp));
  ASSERT_EQ(gloo.wait(), 0) << gloo.err();
  EXPECT_EQ(result_of(gloo.out())["state_digest"], result_of(sim.out())["state_digest"]);
  EXPECT_EQ(result_of(gloo.out())["steps"], 20);
  EXPECT_EQ(result_of(gloo.out())["ranks_agree"], true);
  for (int rank = 0; rank < 3; ++rank) {
    std::ifstream file(calls + "/rank_" + std::to_string(rank) + ".json");
    const auto dump = nlohmann::json::parse(file);
    EXPECT_EQ(dump.at("rank"), rank);
    EXPECT_EQ(dump.at("entries").back().at("state"), "completed");
  }
}

TEST_F(TrainProgram, SeveralNodesEndWithTheBitsOfOne) {
  const Words flags{"--json", "--epochs", "2", "--global-batch-size", "12", "--backend", "gloo"};
  const std::string port = free_port();
  const auto node = [&](const std::string& node_rank, const std::string& ranks) {
    Words words = run_command_line({"--nnodes", "2", "--node-rank", node_rank, "--master-port",
                                    port, "--nproc-per-node", ranks, "--"});
    const Words program = train(flags);
    words.insert(words.end(), program.begin(), program.end());
    return words;
  };
  Launched first(node("0", "2"), kNotLaunched);
  Launched second(node("1", "1"), kNotLaunched);
  Launched one(launched(3, flags), kNotLaunched);
  ASSERT_EQ(one.wait(), 0) << one.err();
  ASSERT_EQ(first.wait(), 0) << first.err();
  ASSERT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(result_of(first.out())["state_digest"], result_of(one.out())["state_digest"]);
}

TEST_F(TrainProgram, DividedStateEndsWithTheBitsOfTheWholeOne) {
  const Words flags{"--json",
                    "--epochs",
                    "2",
                    "--global-batch-size",
                    "12",
                    "--optimizer",
                    "adamw",
                    "--amsgrad",
                    "--clip-grad-norm",
                    "0.5",
                    "--lr-schedule",
                    "poly",
                    "--lr-period",
                    "18",
                    "--lr-power",
                    "0.9",
                    "--lr-warmup",
                    "2"};
  Words simulated = flags;
  simulated.insert(simulated.end(), {"--backend", "sim", "--world-size", "3"});
  Words divided = flags;
  divided.insert(divided.end(), {"--backend", "gloo", "--zero"});
  Launched sim(train(simulated), kNotLaunched);
  ASSERT_EQ(sim.wait(), 0) << sim.err();
  Launched gloo(launched(3, divided));
  ASSERT_EQ(gloo.wait(), 0) << gloo.err();
  EXPECT_EQ(result_of(gloo.out())["state_digest"], result_of(sim.out())["state_digest"]);
  EXPECT_EQ(result_of(gloo.out())["ranks_agree"], true);
}

TEST_F(TrainProgram, ASimulatedFailureSaysHowToRunItAgain) {
  const Words words = train({"--backend", "sim", "--world-size", "2", "--lr", "1e6",
                             "--weight-decay", "1", "--batch-size", "2"});
  Launched run(words, kNotLaunched);
  EXPECT_EQ(run.wait(), 2) << run.err();  // the learning rate
  const std::string replay =
      "replay: ddproof train --data '" + folder_ + "'" +
      " --backend sim --world-size 2 --lr 1e6 --weight-decay 1 --batch-size 2\n";
  EXPECT_NE(run.err().find(replay), std::string::npos) << run.err();
  EXPECT_NE(run.err().find("  last calls of rank 1: all_reduce #"), std::string::npos) << run.err();

  Launched refused(train({"--backend", "sim", "--world-size", "0"}), kNotLaunched);
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_EQ(refused.err().find("replay"), std::string::npos) << refused.err();
}

TEST_F(TrainProgram, ALostRankIsNamedByItsPeersAndTheLauncherReturns137) {
  // Rank 0's metrics go to its output, so the test sees step 3; rank 1 is killed then.
  Launched run(run_script({"--nproc-per-node", "3"},
                          "echo pid $$; exec '" + std::string(DDPROOF_PROGRAM) +
                              "' train --backend gloo --data '" + folder_ +
                              "' --batch-size 2 --epochs 1000000 --metrics /dev/stdout"));
  const std::string& seen = run.read_out_until("\"step\":3,");
  std::vector<pid_t> pids = pids_in(seen);
  ASSERT_EQ(pids.size(), 3u);
  pid_t victim = -1;
  for (const std::string& line : lines_of(seen)) {
    if (line.starts_with("[rank 1] pid ")) victim = static_cast<pid_t>(std::stol(line.substr(13)));
  }
  ASSERT_GT(victim, 0);
  ASSERT_EQ(kill(victim, SIGKILL), 0);
  EXPECT_EQ(run.wait(), 137);
  for (const char* peer : {"0", "2"}) {
    const std::string start =
        "[rank " + std::string(peer) + "] ddproof train: rank " + peer + "/3 [gloo] ";
    const auto lines = lines_of(run.err());
    const auto line = std::ranges::find_if(
        lines, [&](const std::string& text) { return text.starts_with(start); });
    ASSERT_NE(line, lines.end()) << run.err();
    EXPECT_NE(line->find("rank 1"), std::string::npos) << *line;
  }
  for (const pid_t pid : pids) EXPECT_FALSE(exists(pid)) << pid;
}

TEST_F(TrainProgram, AKilledRunGoesOnFromItsCheckpointToTheSameBits) {
  const Words flags{"--backend", "gloo", "--batch-size", "2", "--epochs", "3", "--json"};
  Launched whole(launched(2, flags));
  ASSERT_EQ(whole.wait(), 0) << whole.err();
  Words saving = flags;
  saving.insert(saving.end(), {"--checkpoint-dir", folder_ + "/checkpoints", "--checkpoint-every",
                               "1", "--metrics", "/dev/stdout"});
  Launched killed(launched(2, saving));
  killed.read_out_until("\"step\":25,");
  killed.signal(SIGKILL);  // the launcher; its workers die with it
  EXPECT_EQ(killed.wait(), 137);
  Words resuming = flags;
  resuming.insert(resuming.end(), {"--checkpoint-dir", folder_ + "/checkpoints", "--resume"});
  Launched resumed(launched(2, resuming));
  ASSERT_EQ(resumed.wait(), 0) << resumed.err();
  EXPECT_EQ(result_of(resumed.out())["state_digest"], result_of(whole.out())["state_digest"]);
  EXPECT_EQ(result_of(resumed.out())["steps"], 90);
}

// Whichever rank dies, and however often: all start again, and go on from the last checkpoint.
TEST_F(TrainProgram, RestartsEndWithTheBitsOfTheUndisturbedRun) {
  const std::string program = "echo pid $$; exec '" + std::string(DDPROOF_PROGRAM) +
                              "' train --backend gloo --data '" + folder_ +
                              "' --batch-size 2 --epochs 2 --json";
  const std::string saving = " --resume --checkpoint-every 4 --checkpoint-dir '" + folder_ + "/c'";
  Launched whole(run_script({"--nproc-per-node", "2"}, program));
  ASSERT_EQ(whole.wait(), 0) << whole.err();
  Launched killed(run_script({"--nproc-per-node", "2", "--max-restarts", "3"}, program + saving),
                  {.environment = {"DDPROOF_PROGRESS=lines"}});
  const std::string progress = "[rank 0] [";
  int progress_lines = 0;  // of the attempts before
  for (const int attempt : {0, 1, 2}) {
    if (attempt > 0) {
      const std::string again = "restart " + std::to_string(attempt) + " of 3";
      const std::string& err = killed.read_err_until(again);
      progress_lines = count_of(progress, err.substr(0, err.find(again)));
    }
    killed.read_err_until(progress, progress_lines + 1);
    const auto pids = pids_in(killed.read_out_until("pid ", 2 * (attempt + 1)));
    const auto victim = static_cast<std::size_t>(2 * attempt + attempt % 2);
    ASSERT_GT(pids.size(), victim);
    ASSERT_EQ(kill(pids[victim], SIGKILL), 0);
  }
  EXPECT_EQ(killed.wait(), 0) << killed.err();
  EXPECT_EQ(result_of(killed.out())["state_digest"], result_of(whole.out())["state_digest"]);
  EXPECT_EQ(result_of(killed.out())["steps"], 60);
}

TEST_F(TrainProgram, ARanksErrorReachesTheLaunchersLastLine) {
  Launched run(launched(2, {"--backend", "gloo", "--checkpoint-dir", "/dev/null/x"}));
  EXPECT_EQ(run.wait(), 3);
  const auto lines = lines_of(run.err());
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines.back().starts_with("ddproof run: first failure, ")) << run.err();
  EXPECT_NE(lines.back().find(": ddproof train: "), std::string::npos) << run.err();
  EXPECT_NE(lines.back().find("/dev/null/x"), std::string::npos) << run.err();
}

TEST_F(TrainProgram, AFinishedRunSaysThatNothingIsLeftToDo) {
  const Words flags{"--max-steps", "2", "--checkpoint-dir", folder_ + "/checkpoints", "--resume"};
  Words as_json = flags;
  as_json.push_back("--json");
  ASSERT_EQ(Launched(train(flags), kNotLaunched).wait(), 0);
  Launched again(train(flags), kNotLaunched);
  EXPECT_EQ(again.wait(), 0) << again.err();
  EXPECT_EQ(lines_of(again.out()).at(0),
            "mlp on single, 1 rank: nothing to do, the checkpoint has 2 steps");
  Launched json_again(train(as_json), kNotLaunched);
  EXPECT_EQ(json_again.wait(), 0);
  EXPECT_TRUE(result_of(json_again.out())["loss"].is_null()) << json_again.out();
}

TEST_F(TrainProgram, ACheckpointDirectoryThatCannotBeWrittenEndsEveryRankAtTheStart) {
  const std::string directory = folder_ + "/train-labels-idx1-ubyte/checkpoints";
  Launched run(launched(2, {"--backend", "gloo", "--checkpoint-dir", directory}));
  EXPECT_EQ(run.wait(), 3);
  for (const std::string rank : {"0", "1"}) {
    EXPECT_NE(run.err().find("[rank " + rank +
                             "] ddproof train: rank 0: no checkpoints can be written to " +
                             directory + ": " + directory + ": mkdir: Not a directory\n"),
              std::string::npos)
        << run.err();
  }
}

TEST_F(TrainProgram, TooLittleMemoryIsSaidInWords) {
#if defined(DDPROOF_SIM_ASAN) || defined(DDPROOF_SIM_TSAN)
  GTEST_SKIP() << "the sanitizer itself takes more address space";
#endif
  constexpr int kImages = 6 << 16;  // of 28x28 bytes: 300 MB, in a file without blocks
  const std::string path = folder_ + "/train-images-idx3-ubyte";
  const char header[] = {0, 0, 8, 3, 0, 6, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28};
  std::ofstream(path, std::ios::binary).write(header, sizeof header);
  std::filesystem::resize_file(path, sizeof header + std::uintmax_t{kImages} * 28 * 28);
  Launched run({"sh", "-c",
                "ulimit -v 250000; exec '" + std::string(DDPROOF_PROGRAM) + "' train --data '" +
                    folder_ + "'"},
               kNotLaunched);
  EXPECT_EQ(run.wait(), 3);
  EXPECT_EQ(run.err(), "ddproof train: not enough memory; lower --world-size or --batch-size\n");
}

TEST_F(TrainProgram, TheTimeoutBoundsHowLongRanksWaitToMeet) {
  Launched run(run_script({"--nproc-per-node", "2"}, "[ $RANK = 1 ] && exec sleep 1000; exec '" +
                                                         std::string(DDPROOF_PROGRAM) +
                                                         "' train --backend gloo --data '" +
                                                         folder_ + "' --timeout 0.25"));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_NE(run.err().find("[rank 0] ddproof train: rank 0/2 [gloo] join: rank 1 did not come "
                           "within 250 ms; "),
            std::string::npos)
      << run.err();
}

// With Open MPI's own variables and nothing else.
TEST_F(TrainProgram, MpirunsRanksEndWithTheBitsOfOurLaunchers) {
  if (!std::filesystem::exists("/usr/bin/mpirun")) GTEST_SKIP() << "no /usr/bin/mpirun";
  const Words flags{"--backend", "gloo", "--batch-size", "8", "--epochs", "1", "--json"};
  Launched ours(launched(2, flags));
  ASSERT_EQ(ours.wait(), 0) << ours.err();
  Words words{"/usr/bin/mpirun", "--oversubscribe", "-n", "2"};
  const Words program = train(flags);
  words.insert(words.end(), program.begin(), program.end());
  LaunchedOptions options = kNotLaunched;
  options.environment.insert(options.environment.end(),
                             {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
  Launched theirs(words, options);
  ASSERT_EQ(theirs.wait(), 0) << theirs.err();
  EXPECT_EQ(result_of(theirs.out())["started_by"], "Open MPI");
  EXPECT_EQ(result_of(ours.out())["started_by"], "ddproof run");
  EXPECT_EQ(result_of(theirs.out())["state_digest"], result_of(ours.out())["state_digest"]);
}

// The real one. Debian's needs -r, since its default breaks under this Python (SEMANTICS 10.1), and
// its --standalone is of no use to tests that run side by side: its rendezvous has one fixed port.
class UnderTorchrun : public TrainProgram {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/bin/torchrun")) GTEST_SKIP() << "no /usr/bin/torchrun";
  }
  Words torchrun(const Words& flags, const Words& train_flags) const {
    Words words{"/usr/bin/torchrun",
                "--rdzv_backend",
                "c10d",
                "--rdzv_endpoint",
                "localhost:0",
                "--nproc_per_node",
                "2",
                "-r",
                "1",
                "-t",
                "1",
                "--log_dir",
                folder_ + "/logs",
                "--monitor_interval",
                "0.1",
                "--no_python"};
    words.insert(words.end() - 1, flags.begin(), flags.end());
    const Words program = train(train_flags);
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }
};

TEST_F(UnderTorchrun, RanksEndWithTheBitsOfOurLaunchers) {
  const Words flags{"--backend", "gloo", "--batch-size", "8", "--epochs", "1", "--json"};
  Launched ours(launched(2, flags));
  ASSERT_EQ(ours.wait(), 0) << ours.err();
  Launched theirs(torchrun({}, flags), kNotLaunched);
  ASSERT_EQ(theirs.wait(), 0) << theirs.err();
  EXPECT_EQ(result_of(theirs.out())["started_by"], "torchrun");
  EXPECT_EQ(result_of(theirs.out())["state_digest"], result_of(ours.out())["state_digest"]);
}

TEST_F(UnderTorchrun, ItsReportHasTheMessageOfARank) {
  Launched theirs(torchrun({}, {"--backend", "gloo", "--checkpoint-dir", "/dev/null/x"}),
                  kNotLaunched);
  EXPECT_EQ(theirs.wait(), 1);
  const std::string all = theirs.out() + theirs.err();
  const auto report = all.find("Root Cause (first observed failure)");
  ASSERT_NE(report, std::string::npos) << all;
  EXPECT_NE(all.find("ddproof train: ", report), std::string::npos) << all;
  EXPECT_NE(all.find("/dev/null/x", report), std::string::npos) << all;
}

TEST_F(TrainProgram, WithoutALauncherItTrainsAlone) {
  for (const char* backend : {"single", "gloo"}) {
    LaunchedOptions options = kNotLaunched;
    options.environment.push_back("LOCAL_RANK=-1");
    Launched run(train({"--json", "--max-steps", "2", "--backend", backend}), options);
    ASSERT_EQ(run.wait(), 0) << run.err();
    EXPECT_EQ(result_of(run.out())["world_size"], 1);
  }
}

struct Refusal {
  Words flags;
  Words environment;
  int status;
  std::string text;
};

TEST_F(TrainProgram, WrongUseIsRefusedWithOneLine) {
  const Refusal refusals[] = {
      {{"--backend", "single", "--world-size", "2"},
       {},
       2,
       "backend single: world size is 2, allowed is 1; use --backend sim or gloo for more ranks"},
      {{"--backend", "gloo", "--world-size", "2"},
       {},
       2,
       "--backend gloo --world-size 2: no launcher started this process; use `ddproof run "
       "--nproc-per-node 2 -- ddproof train ...`"},
      {{"--backend", "gloo", "--world-size", "3"},
       {"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"},
       2,
       "--world-size is 3, but the world has 2 ranks (from environment variables); leave the flag "
       "out"},
      {{},
       {"RANK=5", "LOCAL_RANK=0", "WORLD_SIZE=2"},
       2,
       "environment variable RANK is \"5\"; allowed: a whole number from 0 to 1 (WORLD_SIZE is 2)"},
      {{"--backend", "gloo"},
       {"RANK=0", "LOCAL_RANK=0", "WORLD_SIZE=1", "LOCAL_WORLD_SIZE=1",
        "MASTER_ADDR=no-such-host.invalid", "MASTER_PORT=29500"},
       3,
       "store server: no-such-host.invalid:29500 cannot be listened on ("},
      {{"--backend", "sim", "--world-size", "2"},
       {"RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"},
       2,
       "--backend sim lives in one process, but the world has 2 ranks (from environment "
       "variables); use --backend gloo"},
      {{"--batch-size", "0"}, {}, 2, "--batch-size"},
      {{"--timeout", "0"}, {}, 2, "--timeout: \"0\" is not allowed"},
      {{"--batch-size", "4", "--global-batch-size", "8"},
       {},
       2,
       "--batch-size and --global-batch-size exclude each other"},
      {{"--backend", "sim", "--world-size", "3", "--global-batch-size", "8"}, {}, 2, "8"},
      {{"--eval"}, {}, 3, "t10k-images-idx3-ubyte"},
      {{"--format", "cifar10"}, {}, 3, "data_batch_1.bin"},
      {{"--resume"}, {}, 2, "train: --resume needs --checkpoint-dir"},
      {{"--checkpoint-every", "3"}, {}, 2, "train: --checkpoint-every needs --checkpoint-dir"},
      {{"--metrics", ""}, {}, 2, "--metrics: \"\" is not allowed"},
      {{"--epohcs", "3"}, {}, 2, "--epochs"},
      {{"--start-epoch", "1"}, {}, 2, "--start-epoch is 1, expected 0 or more and below --epochs"},
      {{"--local_rank", "1"},
       {},
       2,
       "--local-rank is 1, LOCAL_RANK is not set; let `ddproof run` or torchrun start the ranks"},
  };
  for (const Refusal& refusal : refusals) {
    LaunchedOptions options = kNotLaunched;
    for (const std::string& entry : refusal.environment) options.environment.push_back(entry);
    Launched run(train(refusal.flags), options);
    EXPECT_EQ(run.wait(), refusal.status) << refusal.text << "\n" << run.err();
    EXPECT_NE(run.err().find(refusal.text), std::string::npos) << run.err();
    EXPECT_EQ(lines_of(run.err()).size(), 1u) << run.err();
    EXPECT_EQ(run.out(), "");
  }
}

}  // namespace
}  // namespace ddproof
