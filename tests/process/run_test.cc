// `ddproof run` as its users see it: variables, output, statuses, wrong use.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "backends/local/os_runtime.h"
#include "backends/store/tcp_store_server.h"
#include "tests/process/launched.h"

namespace ddproof {
namespace {

using Lines = std::vector<std::string>;

std::set<std::string> set_of(const Lines& lines) { return {lines.begin(), lines.end()}; }

TEST(Run, WorkersSeeTheVariablesThatTorchrunSets) {
  Launched run(run_script({"--nproc-per-node", "2"},
                          "env | grep -E 'RANK|WORLD|MASTER_ADDR|ROLE|TORCH|OMP'"),
               {.environment = {"OMP_NUM_THREADS", "RANK=7", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}});
  ASSERT_EQ(run.wait(), 0) << run.err();
  const std::set<std::string> lines = set_of(lines_of(run.out()));
  for (const std::string rank : {"0", "1"}) {
    for (const std::string& variable :
         {"RANK=" + rank, "LOCAL_RANK=" + rank, "ROLE_RANK=" + rank, std::string("WORLD_SIZE=2"),
          std::string("LOCAL_WORLD_SIZE=2"), std::string("ROLE_WORLD_SIZE=2"),
          std::string("GROUP_RANK=0"), std::string("GROUP_WORLD_SIZE=1"),
          std::string("ROLE_NAME=default"), std::string("MASTER_ADDR=127.0.0.1"),
          std::string("TORCHELASTIC_RESTART_COUNT=0"), std::string("TORCHELASTIC_MAX_RESTARTS=0"),
          std::string("TORCHELASTIC_USE_AGENT_STORE=True"),
          std::string("TORCH_NCCL_ASYNC_ERROR_HANDLING=1"), std::string("OMP_NUM_THREADS=1")}) {
      EXPECT_TRUE(lines.contains("[rank " + rank + "] " + variable)) << variable << "\n"
                                                                     << run.out();
    }
  }
}

TEST(Run, OmpThreadsAreLeftAloneWhenSetOrWithOneRank) {
  Launched set(run_script({"--nproc-per-node", "2"}, "echo omp $OMP_NUM_THREADS"),
               {.environment = {"OMP_NUM_THREADS=3"}});
  ASSERT_EQ(set.wait(), 0);
  EXPECT_EQ(set_of(lines_of(set.out())),
            (std::set<std::string>{"[rank 0] omp 3", "[rank 1] omp 3"}));
  Launched one(run_script({}, "echo omp ${OMP_NUM_THREADS-unset}"),
               {.environment = {"OMP_NUM_THREADS"}});
  ASSERT_EQ(one.wait(), 0);
  EXPECT_EQ(one.out(), "[rank 0] omp unset\n");
}

TEST(Run, RanksMeetAtTheLaunchersStore) {
  for (const char* address : {"127.0.0.1", "localhost", "::1", "[::1]"}) {
    Launched run(run_command_line({"--nproc-per-node=3", "--master-port=0", "--master-addr",
                                   address, "--", DDPROOF_RANK_PROGRAM}));
    ASSERT_EQ(run.wait(), 0) << address << ": " << run.err();
    EXPECT_EQ(
        set_of(lines_of(run.out())),
        (std::set<std::string>{"[rank 0] met 3 by ddproof run", "[rank 1] met 3 by ddproof run",
                               "[rank 2] met 3 by ddproof run"}));
  }
}

// The launcher's store asks for it, and its workers inherit it; so does a store that rank 0 hosts.
TEST(Run, AJobMayHaveAToken) {
  const LaunchedOptions options{.environment = {"DDPROOF_STORE_TOKEN=secret"}};
  Launched run(run_command_line({"--standalone", "--nproc-per-node", "2", DDPROOF_RANK_PROGRAM}),
               options);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(lines_of(run.out()).size(), 2u) << run.out();
  Launched other(run_script({"--nproc-per-node", "2"},
                            "DDPROOF_STORE_TOKEN=other exec '" DDPROOF_RANK_PROGRAM "'"),
                 options);
  EXPECT_NE(other.wait(), 0);
  EXPECT_NE(other.err().find("the server has another token than this program"), std::string::npos)
      << other.err();
  EXPECT_EQ(other.err().find("secret"), std::string::npos) << other.err();
}

TEST(Run, RankZeroHostsTheStoreWhenNoLauncherDoes) {
  std::string port;
  {
    OsRuntime runtime;
    port = std::to_string(TcpStoreServer(runtime, {.host = "127.0.0.1"}).port());
  }
  const auto variables = [&port](const std::string& rank) -> LaunchedOptions {
    return {.environment = {"RANK=" + rank, "LOCAL_RANK=" + rank, "WORLD_SIZE=2",
                            "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port,
                            "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID",
                            "DDPROOF_RUN_ID"}};
  };
  Launched one({DDPROOF_RANK_PROGRAM}, variables("1"));  // the host comes last
  Launched zero({DDPROOF_RANK_PROGRAM}, variables("0"));
  for (Launched* rank : {&one, &zero}) {
    EXPECT_EQ(rank->wait(), 0) << rank->err();
    EXPECT_EQ(rank->out(), "met 2 by environment variables\n");
  }
}

TEST(Run, LinesOfManyRanksNeverMix) {
  constexpr int kRanks = 4;
  constexpr int kLines = 3000;
  // Each line is written in two pieces of changing length.
  const std::string script =
      "awk -v r=$RANK 'BEGIN { for (i = 0; i < " + std::to_string(kLines) +
      "; ++i) { s = sprintf(\"%0*d\", 1 + i % 211, 0); printf \"<%d %d \", r, i; fflush(); "
      "printf \"%s>\\n\", s } }'";
  Launched run(run_script({"--nproc-per-node", std::to_string(kRanks)}, script));
  ASSERT_EQ(run.wait(), 0) << run.err();
  std::vector<int> next(kRanks, 0);
  for (const std::string& line : lines_of(run.out())) {
    const int rank = line.at(6) - '0';
    ASSERT_TRUE(0 <= rank && rank < kRanks) << line;
    const int i = next[static_cast<std::size_t>(rank)]++;
    ASSERT_EQ(line, "[rank " + std::to_string(rank) + "] <" + std::to_string(rank) + " " +
                        std::to_string(i) + " " + std::string(1 + i % 211, '0') + ">");
  }
  EXPECT_EQ(next, std::vector<int>(kRanks, kLines));
}

TEST(Run, OutputAndErrorsStayApartAndUnfinishedLinesAreFinished) {
  Launched run(run_script({}, "echo one; echo two >&2; printf three; printf four >&2"));
  ASSERT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "[rank 0] one\n[rank 0] three\n");
  EXPECT_EQ(run.err(), "[rank 0] two\n[rank 0] four\n");
}

TEST(Run, OnlyRankZeroReadsTheInput) {
  Launched run(run_script({"--nproc-per-node", "2"}, "echo \"input: $(cat)\""));
  run.write_input("hello");
  run.close_input();
  ASSERT_EQ(run.wait(), 0);
  EXPECT_EQ(set_of(lines_of(run.out())),
            (std::set<std::string>{"[rank 0] input: hello", "[rank 1] input: "}));
}

TEST(Run, TheProgramsOwnFlagsAreItsOwn) {
  Launched run(run_command_line({"--standalone", "echo", "--nproc-per-node", "x", "--", "-y"}));
  ASSERT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.out(), "[rank 0] --nproc-per-node x -- -y\n");
}

TEST(Run, TheStatusIsThatOfTheWorkerThatFailed) {
  struct Row {
    const char* script;
    int status;
    const char* text;
  };
  for (const Row& row : {Row{"exit 7", 7, "exited with status 7"},
                         Row{"kill -KILL $$", 137, "was killed by SIGKILL"},
                         Row{"kill -SEGV $$", 139, "was killed by SIGSEGV"},
                         Row{"kill -TERM $$", 143, "was killed by SIGTERM"},
                         Row{"exit 255", 255, "exited with status 255"}}) {
    Launched run(
        run_script({"--nproc-per-node", "3"},
                   "if [ $RANK = 1 ]; then " + std::string(row.script) + "; fi; exec sleep 1000"));
    EXPECT_EQ(run.wait(), row.status) << row.script;
    const std::string& text = run.err();
    EXPECT_TRUE(text.starts_with("ddproof run: rank 1 (pid ")) << text;
    EXPECT_NE(text.find(") " + std::string(row.text) + "; stopping the other 2\n"),
              std::string::npos)
        << text;
    EXPECT_TRUE(text.ends_with(") " + std::string(row.text) + "\n")) << text;
  }
}

TEST(Run, AWorkerThatEndsWellEarlyIsNoFailure) {
  Launched run(run_script({"--nproc-per-node", "2"}, "[ $RANK = 1 ] && exit 0; echo later"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "[rank 0] later\n");
  EXPECT_EQ(run.err(), "");
}

TEST(Run, APortInUseNamesAddressAndHolder) {
  OsRuntime runtime;
  const TcpStoreServer holder(runtime, {.host = "127.0.0.1"});
  const std::string port = std::to_string(holder.port());
  Launched run(run_command_line({"--master-port", port, "echo", "started"}));
  EXPECT_EQ(run.wait(), 3);
  EXPECT_EQ(run.out(), "");
  EXPECT_TRUE(
      run.err().starts_with("ddproof run: store server: 127.0.0.1:" + port + " is in use by "))
      << run.err();
  EXPECT_TRUE(run.err().ends_with(" (pid " + std::to_string(::getpid()) +
                                  "); choose another port, or 0 for any free one\n"))
      << run.err();
}

TEST(Run, TwoStandaloneJobsDoNotMeet) {
  Launched first(run_script({}, "echo port $MASTER_PORT; read line"));
  first.read_out_until("\n");
  Launched second(run_script({}, "echo port $MASTER_PORT"));
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(first.wait(), 1);  // `read` at the end of the input
  EXPECT_NE(first.out(), second.out());
}

TEST(Run, WrongUseIsRefusedBeforeAnythingStarts) {
  struct Row {
    Lines arguments;
    std::string text;
  };
  const std::string see = " (see ddproof run --help)\n";
  for (const Row& row :
       {Row{{"--nproc-per-nod", "3", "echo", "started"},
            "unknown flag \"--nproc-per-nod\"; did you mean \"--nproc-per-node\"?" + see},
        Row{{"--nproc-per-node", "0", "echo", "started"},
            "--nproc-per-node: \"0\" is not allowed; allowed: auto, cpu, gpu or a whole number "
            "from 1 "
            "to 4096\n"},
        Row{{"--master-port", "70000", "echo", "started"},
            "--master-port: \"70000\" is not allowed; allowed: a whole number from 0 to 65535" +
                see},
        Row{{"--master-addr", "a:b", "echo", "started"},
            "--master-addr is \"a:b\"; allowed: a host name, an IPv4 address or an IPv6 address, "
            "without a port\n"},
        Row{{"--standalone"},
            "no program given; usage: ddproof run [FLAGS] -- PROGRAM [ARGUMENTS]\n"},
        Row{{"--standalone", "--master-port", "1", "echo", "started"},
            "--standalone chooses a free port, so --master-port is not allowed with it\n"},
        Row{{"--nnodes", "2:1", "echo", "started"},
            "--nnodes: \"2:1\" is not allowed; allowed: N or MIN:MAX, from 1 to 16384\n"},
        Row{{"--nnodes", "2", "--node-rank", "2", "echo", "started"},
            "--node-rank: \"2\" is not allowed; allowed: a whole number from 0 to 1 (--nnodes is "
            "2)\n"},
        Row{{"--node-rank", "1", "echo", "started"},
            "--node-rank: \"1\" is not allowed; allowed: 0 (--nnodes is 1)\n"},
        Row{{"--nnodes", "1:2", "echo", "started"},
            "--nnodes 1:2 needs --rdzv-backend c10d, since static nodes are numbered\n"},
        Row{{"--nnodes", "2", "--rdzv-backend", "c10d", "echo", "started"},
            "--rdzv-backend c10d with --nnodes 2 needs --rdzv-endpoint HOST:PORT, the same on all "
            "nodes\n"},
        Row{{"--nnodes", "2", "--standalone", "echo", "started"},
            "--standalone is one node's, so --nnodes 2 is not allowed with it\n"},
        Row{{"--nnodes", "2", "--master-port", "0", "echo", "started"},
            "with several nodes, all must know the port of the store: 0 is not allowed\n"},
        Row{{"--rdzv-conf", "last_call_timeout=-1", "echo", "started"},
            "--rdzv-conf: \"last_call_timeout=-1\" is not allowed; allowed: a number of seconds "
            "from 0 to 1000000\n"},
        Row{{"--rdzv-id", "../x", "echo", "started"},
            "--rdzv-id: \"../x\" is not allowed; allowed: a text without \"/\", since a folder of "
            "log "
            "files has its name\n"},
        Row{{"--rdzv-conf", "time_out=3", "echo", "started"},
            "--rdzv-conf: \"time_out=3\" is not allowed; did you mean \"timeout\"?; allowed: "
            "KEY=VALUE,... with keys of torchrun\n"},
        Row{{"--rdzv-endpoint", "localhost:70000", "echo", "started"},
            "--rdzv-endpoint: \"localhost:70000\" is not allowed; allowed: HOST:PORT with a port "
            "from 0 to 65535\n"},
        Row{{"--tee", "5", "echo", "started"},
            "--tee is \"5\"; allowed: 0 (none), 1 (standard output), 2 (standard error) or 3 "
            "(both), for all workers, or by local rank, as 0:1,1:3, with local rank 0, each "
            "once\n"},
        Row{{"--signals-to-handle", "SIGTERM", "echo", "started"},
            "--signals-to-handle: \"SIGTERM\" is not allowed; allowed: "
            "SIGTERM,SIGINT,SIGHUP,SIGQUIT, all of which go on to the workers\n"},
        Row{{"--standalone", "no-such-program"},
            "cannot start \"no-such-program\": No such file or directory; give a program that this "
            "user may run\n"}}) {
    Launched run(run_command_line(row.arguments));
    EXPECT_EQ(run.wait(), 2);
    EXPECT_EQ(run.out(), "");
    EXPECT_EQ(run.err(), "ddproof run: " + row.text);
  }
}

}  // namespace
}  // namespace ddproof
