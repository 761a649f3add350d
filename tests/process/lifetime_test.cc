// What `ddproof run` leaves behind, which is nothing, and how it takes signals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/local/os_processes.h"
#include "backends/local/os_runtime.h"
#include "reference/launch/launcher.h"
#include "tests/process/launched.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {
namespace {

// The process ids in lines "[rank R] pid N".
std::vector<pid_t> pids_in(const std::string& text) {
  std::vector<pid_t> pids;
  for (const std::string& line : lines_of(text)) {
    const auto at = line.find("pid ");
    if (at != std::string::npos) pids.push_back(static_cast<pid_t>(std::stol(line.substr(at + 4))));
  }
  return pids;
}

std::size_t entries(const char* directory) {
  std::size_t count = 0;
  for (auto it = std::filesystem::directory_iterator(directory); it != decltype(it)(); ++it)
    ++count;
  return count;
}

// Rank 0 fails when its input ends, which is after all have said their number.
constexpr const char* kRankZeroFails =
    "echo pid $$; if [ $RANK = 0 ]; then read line; exit 7; fi; ";

TEST(Lifetime, PeersOfAFailedWorkerAreStopped) {
  Launched run(
      run_script({"--nproc-per-node", "3"}, std::string(kRankZeroFails) + "exec sleep 1000"));
  run.read_out_until("pid ", 3);
  EXPECT_EQ(run.wait(), 7);
  const std::vector<pid_t> pids = pids_in(run.out());
  ASSERT_EQ(pids.size(), 3U);
  for (const pid_t pid : pids) EXPECT_FALSE(exists(pid)) << pid;
}

TEST(Lifetime, WorkersEndWhenNobodyReadsTheirOutput) {
  Launched run({"sh", "-c",
                "'" + std::string(DDPROOF_PROGRAM) +
                    "' run --standalone --nproc-per-node 2 -- yes | head -n 1"});
  EXPECT_EQ(run.wait(), 0);  // head's; a launcher that goes on would hold the pipe of its errors
  EXPECT_NE(run.out().find("] y\n"), std::string::npos);
  EXPECT_NE(run.err().find("was killed by SIGPIPE"), std::string::npos) << run.err();
}

TEST(Lifetime, AWorkerThatDoesNotStopIsKilledAfterTheGrace) {
  Launched run(
      run_script({"--nproc-per-node", "2", "--grace-seconds", "0.2"},
                 "trap '' TERM; " + std::string(kRankZeroFails) + "while :; do sleep 1000; done"));
  run.read_out_until("pid ", 2);
  EXPECT_EQ(run.wait(), 7);
  EXPECT_NE(run.err().find(") did not stop within 0.200 s; killing it\n"), std::string::npos)
      << run.err();
  for (const pid_t pid : pids_in(run.out())) EXPECT_FALSE(exists(pid)) << pid;
}

TEST(Lifetime, SignalsGoOnToTheWorkers) {
  struct Row {
    int signal;
    const char* name;
  };
  for (const Row& row :
       {Row{SIGTERM, "TERM"}, Row{SIGINT, "INT"}, Row{SIGHUP, "HUP"}, Row{SIGQUIT, "QUIT"}}) {
    const std::string name = row.name;
    // The loop of short sleeps lets the shell run its trap.
    Launched run(
        run_script({"--nproc-per-node", "2"}, "trap 'echo got " + name + "; exit 0' " + name +
                                                  "; echo ready; while :; do sleep 0.05; done"));
    run.read_out_until("ready", 2);
    run.signal(row.signal);
    EXPECT_EQ(run.wait(), 128 + row.signal);
    for (const std::string rank : {"0", "1"}) {
      EXPECT_NE(run.out().find("[rank " + rank + "] got " + name + "\n"), std::string::npos)
          << run.out();
    }
    EXPECT_TRUE(
        run.err().starts_with("ddproof run: received SIG" + name + "; stopping 2 workers\n"))
        << run.err();
  }
}

TEST(Lifetime, ASecondSignalEndsTheGrace) {
  Launched run(run_script({}, "trap 'echo got it' TERM; echo ready; while :; do sleep 0.05; done"));
  run.read_out_until("ready");
  run.signal(SIGTERM);
  run.read_out_until("got it");
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 143);
  EXPECT_NE(run.err().find(") is still running at a second SIGINT; killing it\n"),
            std::string::npos)
      << run.err();
}

TEST(Lifetime, AHangupIgnoredAtTheStartStaysIgnored) {
  Launched run(run_script({}, "grep SigIgn /proc/self/status; read line; echo done"),
               {.ignored_signals = {SIGHUP}});
  const std::string ignored = run.read_out_until("\n");
  EXPECT_TRUE((std::stoull(ignored.substr(ignored.find(':') + 1), nullptr, 16) & 1) != 0)
      << ignored;
  run.signal(SIGHUP);
  run.write_input("go on\n");
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_NE(run.out().find("done"), std::string::npos);
}

TEST(Lifetime, WorkersGetTheSignalsTheLauncherWasStartedWith) {
  Launched run(
      run_command_line({"--standalone", "grep", "-E", "SigBlk|SigIgn", "/proc/self/status"}));
  ASSERT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "[rank 0] SigBlk:\t0000000000000000\n[rank 0] SigIgn:\t0000000000000000\n");
}

TEST(Lifetime, AReaderThatStandsStillDoesNotKeepSignalsWaiting) {
  Launched run(run_script({}, "echo pid $$ >&2; exec yes 'a line that nobody reads'"));
  const std::vector<pid_t> pids = pids_in(run.read_err_until("\n"));
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait_without_reading(), 143);
  EXPECT_FALSE(exists(pids.at(0)));
}

// Our own output goes to a pipe while it lives, read by this test in portions.
class StandardOutputPipe {
 public:
  StandardOutputPipe() : original_(::dup(STDOUT_FILENO)) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end_ = ends[0];
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
  }
  ~StandardOutputPipe() {
    ::dup2(original_, STDOUT_FILENO);
    ::close(original_);
    ::close(read_end_);
  }
  StandardOutputPipe(const StandardOutputPipe&) = delete;
  StandardOutputPipe& operator=(const StandardOutputPipe&) = delete;

  std::string read() {
    std::string bytes(PIPE_BUF, '\0');
    bytes.resize(static_cast<std::size_t>(::read(read_end_, bytes.data(), bytes.size())));
    return bytes;
  }

 private:
  int original_;
  int read_end_ = -1;
};

TEST(Lifetime, ChildrenMayWriteAsSoonAsLessThanABacklogIsUnsent) {
  constexpr std::size_t kMiB = 1024 * 1024;
  const std::string text = std::string(kMiB, 'a') + std::string(kMiB, 'b');
  OsRuntime runtime;
  OsProcesses processes(runtime);
  std::string received;
  std::vector<ProcessEvent> events;
  {
    StandardOutputPipe output;
    processes.write(Stream::kOut, text);
    const auto pass_on = [&](std::size_t until) {
      while (received.size() < until) {
        processes.next_event(Duration(0));  // sends a portion
        received += output.read();
      }
    };
    pass_on(kMiB + PIPE_BUF);
    // It stays alive, since the end of a child would let its output in at any backlog.
    processes.start({.command = {"sh", "-c", "echo hello; exec sleep 1000"},
                     .environment = {"PATH=/usr/bin:/bin"}});
    events.push_back(processes.next_event(runtime.now() + std::chrono::seconds(20)));
    pass_on(text.size());
  }
  EXPECT_EQ(events[0].kind, ProcessEvent::Kind::kOutput);
  EXPECT_EQ(events[0].bytes, "hello\n");
  EXPECT_TRUE(received == text);
}

TEST(Lifetime, WorkersDieWithAKilledLauncher) {
  const Subreaper subreaper;
  Launched run(run_script({"--nproc-per-node", "2"}, "echo pid $$; exec sleep 1000"));
  const std::vector<pid_t> pids = pids_in(run.read_out_until("pid ", 2) + "\n");
  ASSERT_EQ(pids.size(), 2U);
  run.signal(SIGKILL);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  for (const pid_t pid : pids) EXPECT_EQ(Subreaper::wait_for(pid), 128 + SIGKILL);
}

TEST(Lifetime, WhatAWorkerLeftInItsGroupIsKilledWithIt) {
  // Rank 1 waits for the end of what rank 0 left, through a FIFO that this holds open.
  const TemporaryFolder folder;
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Launched run(run_script({"--nproc-per-node", "2"}, "if [ $RANK = 1 ]; then exec cat < '" + fifo +
                                                         "'; fi; exec 3> '" + fifo +
                                                         "'; sleep 1000 & echo pid $!"));
  EXPECT_EQ(run.wait(), 0);
  const std::vector<pid_t> pids = pids_in(run.out());
  ASSERT_EQ(pids.size(), 1U);
  EXPECT_FALSE(exists(pids[0]));
}

TEST(Lifetime, ADaemonOfAWorkerEndsWithTheJob) {
  // In a session of its own, and its parent has ended.
  const std::string daemon = "setsid sh -c 'sleep 1000 & echo pid $!'; ";
  for (const char* end : {"exit 0", "exit 7", "kill -KILL $$"}) {
    Launched run(run_script({"--nproc-per-node", "2", "--grace-seconds", "0"}, daemon + end));
    run.wait();
    const std::vector<pid_t> pids = pids_in(run.out());
    ASSERT_FALSE(pids.empty()) << run.out();  // the other rank may have been stopped before
    for (const pid_t pid : pids) EXPECT_FALSE(exists(pid)) << end << ": " << pid;
  }
}

TEST(Lifetime, ADaemonLivesUntilAllWorkersHaveEnded) {
  Launched run(
      run_script({"--nproc-per-node", "2"},
                 "if [ $RANK = 1 ]; then setsid sh -c 'sleep 1000 & echo pid $!'; exit; fi; "
                 "read number; kill -0 $number && echo alive"));
  const std::vector<pid_t> pids = pids_in(run.read_out_until("\n"));
  ASSERT_EQ(pids.size(), 1U);
  run.write_input(std::to_string(pids[0]) + "\n");
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_NE(run.out().find("[rank 0] alive\n"), std::string::npos) << run.out();
  EXPECT_FALSE(exists(pids[0]));
}

TEST(Lifetime, ADaemonThatEndsEarlyLeavesNoZombie) {
  Launched run(run_script({},
                          "number=$(setsid sh -c 'true >&2 & echo $!'); "
                          "while kill -0 $number 2> /dev/null; do sleep 0.05; done; echo gone"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.out(), "[rank 0] gone\n");
}

TEST(Lifetime, AChildThatTheLauncherWasBornWithSurvives) {
  const Subreaper subreaper;
  Launched run({"sh", "-c",
                "sleep 1000 & echo pid $!; exec '" + std::string(DDPROOF_PROGRAM) +
                    "' run --standalone -- true"});
  EXPECT_EQ(run.wait_without_reading(), 0);
  const std::vector<pid_t> pids = pids_in(run.read_out_until("\n"));
  ASSERT_EQ(pids.size(), 1U);
  ASSERT_EQ(::kill(pids[0], SIGTERM), 0) << "it has ended";
  EXPECT_EQ(Subreaper::wait_for(pids[0]), 128 + SIGTERM);
}

TEST(Lifetime, AnUnrelatedSiblingSurvives) {
  Launched sibling({"sleep", "1000"});
  Launched run(run_script({"--nproc-per-node", "2", "--grace-seconds", "0"}, "kill -KILL $$"));
  EXPECT_EQ(run.wait(), 137);
  EXPECT_EQ(::waitpid(sibling.pid(), nullptr, WNOHANG), 0) << "the sibling ended";
}

TEST(Lifetime, NoDescriptorReachesTheProgram) {
  // 3 is the folder that ls reads.
  Launched run(
      run_command_line({"--standalone", "--nproc-per-node", "2", "ls", "-m", "/proc/self/fd"}),
      {.extra_descriptor = 9});
  EXPECT_EQ(run.wait(), 0);
  EXPECT_NE(run.out().find("[rank 0] 0, 1, 2, 3\n"), std::string::npos) << run.out();
  EXPECT_NE(run.out().find("[rank 1] 0, 1, 2, 3\n"), std::string::npos) << run.out();
}

TEST(Lifetime, FiftyFailedStartsLeaveNothing) {
  OsRuntime runtime;
  runtime.spawn("first", [] {})->join();  // with which a sanitizer starts a thread of its own
  const std::size_t descriptors = entries("/proc/self/fd");
  const std::size_t threads = entries("/proc/self/task");
  for (int i = 0; i < 50; ++i) {
    OsProcesses processes(runtime);
    LaunchOptions options{.local_world_size = 2, .master_port = 0};
    options.command = i % 2 == 0 ? std::vector<std::string>{"false"}
                                 : std::vector<std::string>{"/no/such/program"};
    try {
      EXPECT_EQ(launch(options, runtime, processes), 1);
    } catch (const ConfigError&) {
      EXPECT_EQ(i % 2, 1);
    }
  }
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries("/proc/self/task"), threads);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

}  // namespace
}  // namespace ddproof
