// The launcher's decisions, on a script of events. tests/process starts real processes.
#include "reference/launch/launcher.h"

#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/check.h"
#include "tests/support/stepped_runtime.h"

namespace ddproof {
namespace {

using Kind = ProcessEvent::Kind;

ProcessEvent end_of(int process, int exit_code, int signal = 0) {
  return {.kind = Kind::kEnd, .process = process, .end = {exit_code, signal}};
}
ProcessEvent received(int signal) { return {.kind = Kind::kSignal, .signal = signal}; }
// Nothing more happens before the launcher's deadline.
const ProcessEvent kDeadline{};

class ScriptedProcesses : public Processes {
 public:
  // Events come `pace` apart on the clock of `runtime`.
  explicit ScriptedProcesses(std::deque<ProcessEvent> events, Duration pace = kSameSignal)
      : events_(std::move(events)), pace_(pace) {}

  int start(const ProcessSpec&) override { return started_++; }
  std::int64_t pid(int process) const override { return 100 + process; }
  void signal(int process, int signal) override { signals.emplace_back(process, signal); }
  ProcessEvent next_event(TimePoint deadline) override {
    DDPROOF_CHECK(!events_.empty());
    runtime.advance(pace_);
    ProcessEvent event = events_.front();
    events_.pop_front();
    DDPROOF_CHECK(event.kind != Kind::kDeadline || deadline != kForever);
    return event;
  }
  void write(Stream stream, const std::string& bytes) override {
    (stream == Stream::kOut ? out : err) += bytes;
  }
  bool output_pending() const override { return false; }
  std::string listener_of(std::uint16_t) const override { return ""; }

  bool finished() const { return events_.empty(); }
  SteppedRuntime runtime;
  std::vector<std::pair<int, int>> signals;  // process, signal
  std::string out;
  std::string err;

 private:
  std::deque<ProcessEvent> events_;
  Duration pace_;
  int started_ = 0;
};

int launch_script(ScriptedProcesses& processes, int workers) {
  const LaunchOptions options{
      .local_world_size = workers, .master_port = 0, .command = {"program"}};
  const int status = launch(options, processes.runtime, processes);
  EXPECT_TRUE(processes.finished());
  return status;
}

using Signals = std::vector<std::pair<int, int>>;

TEST(Launcher, AKilledWorkerIsTheFirstOfFailuresFoundTogether) {
  ScriptedProcesses processes(
      {end_of(0, 3), end_of(2, 0, SIGKILL), kDeadline, kDeadline, end_of(1, 3)});
  EXPECT_EQ(launch_script(processes, 3), 137);
  EXPECT_EQ(processes.err,
            "ddproof run: rank 2 (pid 102) was killed by SIGKILL; stopping the other 1\n"
            "ddproof run: rank 0 (pid 100) exited with status 3 after that\n");
  EXPECT_EQ(processes.signals, (Signals{{0, SIGTERM}, {1, SIGTERM}, {2, SIGTERM}}));
}

TEST(Launcher, TheFirstFailureCountsWhateverFollows) {
  ScriptedProcesses processes(
      {end_of(1, 7), kDeadline, kDeadline, end_of(0, 0, SIGTERM), end_of(2, 9)});
  EXPECT_EQ(launch_script(processes, 3), 7);
  EXPECT_EQ(processes.err,
            "ddproof run: rank 1 (pid 101) exited with status 7; stopping the other 2\n");
}

TEST(Launcher, OthersMaySayWhomTheyLostBeforeTheyAreStopped) {
  ScriptedProcesses processes(
      {end_of(1, 0, SIGKILL), kDeadline, end_of(0, 3), kDeadline, end_of(2, 3), kDeadline});
  EXPECT_EQ(launch_script(processes, 3), 137);
  EXPECT_EQ(processes.err,
            "ddproof run: rank 1 (pid 101) was killed by SIGKILL; stopping the other 2\n"
            "ddproof run: rank 0 (pid 100) exited with status 3 after that\n"
            "ddproof run: rank 2 (pid 102) exited with status 3 after that\n");
  EXPECT_EQ(processes.signals, Signals{});
}

TEST(Launcher, WhoDoesNotStopIsKilled) {
  ScriptedProcesses processes(
      {end_of(0, 1), kDeadline, kDeadline, end_of(2, 0), kDeadline, end_of(1, 0, 9)});
  EXPECT_EQ(launch_script(processes, 3), 1);
  EXPECT_EQ(processes.err,
            "ddproof run: rank 0 (pid 100) exited with status 1; stopping the other 2\n"
            "ddproof run: rank 1 (pid 101) did not stop within 30 s; killing it\n");
  EXPECT_EQ(processes.signals.back(), std::pair(1, SIGKILL));
}

TEST(Launcher, ASignalGoesToAllAndGivesTheStatus) {
  ScriptedProcesses processes({received(SIGINT), end_of(0, 0), end_of(1, 4)});
  EXPECT_EQ(launch_script(processes, 2), 130);
  EXPECT_EQ(processes.err, "ddproof run: received SIGINT; stopping 2 workers\n");
  EXPECT_EQ(processes.signals, (Signals{{0, SIGINT}, {1, SIGINT}}));
}

TEST(Launcher, AUsersSignalGoesToAllAndStopsNobody) {
  ScriptedProcesses processes(
      {received(SIGUSR1), received(SIGUSR2), received(SIGUSR2), end_of(0, 0), end_of(1, 0)});
  EXPECT_EQ(launch_script(processes, 2), 0);
  EXPECT_EQ(processes.err, "");
  EXPECT_EQ(
      processes.signals,
      (Signals{
          {0, SIGUSR1}, {1, SIGUSR1}, {0, SIGUSR2}, {1, SIGUSR2}, {0, SIGUSR2}, {1, SIGUSR2}}));
}

TEST(Launcher, ASecondSignalKills) {
  ScriptedProcesses processes({received(SIGTERM), received(SIGTERM), end_of(0, 0, 9)});
  EXPECT_EQ(launch_script(processes, 1), 143);
  EXPECT_EQ(processes.signals, (Signals{{0, SIGTERM}, {0, SIGKILL}}));
}

// `timeout` signals us and our process group, so that one request comes twice.
TEST(Launcher, TheSameSignalAgainAtOnceCountsOnce) {
  constexpr Duration kTooSoon = kSameSignal - Duration(1);
  ScriptedProcesses stopping({received(SIGTERM), received(SIGTERM), end_of(0, 0)}, kTooSoon);
  EXPECT_EQ(launch_script(stopping, 1), 143);
  EXPECT_EQ(stopping.signals, (Signals{{0, SIGTERM}}));
  EXPECT_EQ(stopping.err, "ddproof run: received SIGTERM; stopping 1 worker\n");
  ScriptedProcesses another({received(SIGTERM), received(SIGINT), end_of(0, 0, 9)}, kTooSoon);
  EXPECT_EQ(launch_script(another, 1), 143);
  EXPECT_EQ(another.signals, (Signals{{0, SIGTERM}, {0, SIGKILL}}));
}

TEST(Launcher, ASignalAfterAFailureKeepsTheStatus) {
  ScriptedProcesses processes(
      {end_of(1, 7), kDeadline, received(SIGINT), received(SIGTERM), end_of(0, 0, 9)});
  EXPECT_EQ(launch_script(processes, 2), 7);
  EXPECT_EQ(processes.signals, (Signals{{0, SIGINT}, {1, SIGINT}, {0, SIGKILL}}));
}

TEST(Launcher, OutputThatCannotBeWrittenIsSaidAndTheJobGoesOn) {
  const ProcessEvent full{
      .kind = Kind::kUnwritable, .stream = Stream::kOut, .bytes = "No space left on device"};
  const std::string text =
      "ddproof run: standard output cannot be written (No space left on device); what the workers "
      "print there is lost\n";
  ScriptedProcesses well({full, end_of(1, 0), end_of(0, 0)});
  EXPECT_EQ(launch_script(well, 2), kOutputLostStatus);
  EXPECT_EQ(well.err, text);
  EXPECT_EQ(well.signals, Signals{});
  ScriptedProcesses failing({full, end_of(0, 7), kDeadline});
  EXPECT_EQ(launch_script(failing, 1), 7);
}

TEST(Launcher, AllWellIsZero) {
  ScriptedProcesses processes(
      {{.kind = Kind::kOutput, .process = 1, .stream = Stream::kOut, .bytes = "a\nb"},
       end_of(1, 0),
       end_of(0, 0)});
  EXPECT_EQ(launch_script(processes, 2), 0);
  EXPECT_EQ(processes.out, "[rank 1] a\n[rank 1] b\n");
  EXPECT_EQ(processes.err, "");
  EXPECT_EQ(processes.signals, Signals{});
}

}  // namespace
}  // namespace ddproof
