// `ddproof run` as several nodes, all on this machine.
#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <string>
#include <vector>

#include "tests/process/free_port.h"
#include "tests/process/launched.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

std::vector<std::string> node_command(std::vector<std::string> flags, const std::string& script) {
  for (const char* word : {"--", "sh", "-c"}) flags.emplace_back(word);
  flags.push_back(script);
  return run_command_line(flags);
}

std::vector<std::string> static_node_command(const std::string& port, const std::string& node_rank,
                                             const std::string& script) {
  return node_command({"--nnodes", "2", "--node-rank", node_rank, "--master-port", port,
                       "--nproc-per-node", node_rank == "0" ? "1" : "2"},
                      script);
}

// A worker that goes on until it is stopped.
const char* const kStay = "echo ready; exec sleep 1000";

TEST(Nodes, TwoStaticNodesAreOneWorld) {
  const std::string port = free_port();
  const std::string script =
      "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE "
      "$ROLE_RANK/$ROLE_WORLD_SIZE";
  Launched second(static_node_command(port, "1", script));
  Launched first(static_node_command(port, "0", script));
  ASSERT_EQ(first.wait(), 0) << first.err();
  ASSERT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(first.out(), "[rank 0] 0/3 0/1 0/2 0/3\n");
  const auto lines = lines_of(second.out());
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()),
            (std::set<std::string>{"[rank 1] 1/3 0/2 1/2 1/3", "[rank 2] 2/3 1/2 1/2 2/3"}));
}

TEST(Nodes, RanksOfAllNodesMeet) {
  const std::string port = free_port();
  std::vector<std::string> command = {"--nnodes=2", "--master-port=" + port, "--nproc-per-node=2"};
  const auto start = [&](const char* node_rank) {
    std::vector<std::string> words = command;
    for (const char* word : {"--node-rank", node_rank, "--", DDPROOF_RANK_PROGRAM}) {
      words.emplace_back(word);
    }
    return run_command_line(words);
  };
  Launched first(start("0"));
  Launched second(start("1"));
  ASSERT_EQ(first.wait(), 0) << first.err();
  ASSERT_EQ(second.wait(), 0) << second.err();
  const std::set<std::string> expected = {"[rank 2] met 4 by ddproof run",
                                          "[rank 3] met 4 by ddproof run"};
  const auto lines = lines_of(second.out());
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()), expected);
}

TEST(Nodes, AFailureOnOneNodeIsTheStatusOfAll) {
  const std::string port = free_port();
  const std::string script = "[ $RANK = 1 ] && exit 7; exec sleep 1000";
  Launched first(static_node_command(port, "0", script));
  Launched second(static_node_command(port, "1", script));
  EXPECT_EQ(first.wait(), 7);
  EXPECT_EQ(second.wait(), 7);
  for (const Launched* node : {&first, &second}) {
    const std::string last = lines_of(node->err()).back();
    EXPECT_TRUE(last.starts_with("ddproof run: first failure, ")) << node->err();
    EXPECT_NE(last.find(": rank 1 (pid "), std::string::npos) << last;
    EXPECT_TRUE(last.ends_with(" exited with status 7")) << last;
  }
}

TEST(Nodes, AFailureStartsAllNodesAgain) {
  const std::string port = free_port();
  const std::string script =
      "[ $RANK = 2 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 7; "
      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 1000; echo again";
  const auto start = [&](const std::string& node_rank) {
    std::vector<std::string> command = static_node_command(port, node_rank, script);
    command.insert(command.begin() + 2, {"--max-restarts", "1"});
    return command;
  };
  Launched first(start("0"));
  Launched second(start("1"));
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(first.out(), "[rank 0] again\n");
  EXPECT_NE(first.err().find("ddproof run: starting all 3 workers again: restart 1 of 1\n"),
            std::string::npos)
      << first.err();
}

TEST(Nodes, NodesMayComeAndDieAndTheOthersGoOn) {
  const TemporaryFolder folder;
  const std::string may_end = folder.path() + "/may_end";
  const std::vector<std::string> command =
      node_command({"--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint",
                    "127.0.0.1:" + free_port(), "--rdzv-conf", "last_call_timeout=0"},
                   "echo world $WORLD_SIZE restarts $TORCHELASTIC_RESTART_COUNT; [ -e '" + may_end +
                       "' ] || exec sleep 1000");
  Launched first(command);
  first.read_out_until("world 1 restarts 0\n");
  Launched second(command);
  second.read_out_until("world 2 restarts 0\n");
  first.read_out_until("world 2 restarts 0\n");
  Launched(std::vector<std::string>{"touch", may_end}).wait();
  second.signal(SIGKILL);
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_TRUE(first.out().ends_with("[rank 0] world 1 restarts 0\n")) << first.out();
  EXPECT_NE(first.err().find(" is lost: its process ended\n"), std::string::npos) << first.err();
}

TEST(Nodes, ANodeRankThatIsTakenIsRefusedAndAnEndIsToldToAll) {
  const std::string port = free_port();
  Launched first(static_node_command(port, "0", kStay));
  Launched second(static_node_command(port, "1", kStay));
  first.read_out_until("ready");
  second.read_out_until("ready", 2);
  Launched third(static_node_command(port, "1", kStay));
  EXPECT_EQ(third.wait(), 2);
  EXPECT_NE(third.err().find("ddproof run: --node-rank 1 is given to two nodes of job \"none\": "),
            std::string::npos)
      << third.err();
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 143) << first.err();
  EXPECT_EQ(second.wait(), 3);
  EXPECT_TRUE(second.err().ends_with(" is lost: it left\n")) << second.err();
}

TEST(Nodes, WhoWaitsForOthersCanBeToldToEnd) {
  const std::string port = free_port();
  Launched alone(static_node_command(port, "1", kStay));  // nobody hosts the store
  alone.read_err_until("joining the rendezvous");
  alone.signal(SIGTERM);
  EXPECT_EQ(alone.wait(), 143);
  EXPECT_TRUE(alone.err().ends_with("ddproof run: received SIGTERM; leaving the job\n"));
  Launched host(static_node_command(port, "0", kStay));  // nobody else comes
  host.read_err_until("hosting the rendezvous");
  host.signal(SIGINT);
  EXPECT_EQ(host.wait(), 130);
}

}  // namespace
}  // namespace ddproof
