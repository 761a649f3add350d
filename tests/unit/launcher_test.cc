// The launcher's decisions, on a script of events. tests/process starts real processes.
#include "reference/launch/launcher.h"

#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/check.h"
#include "backends/api/files.h"
#include "reference/launch/error_file.h"
#include "tests/support/stepped_runtime.h"
#include "tests/support/temporary_folder.h"

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

  int start(const ProcessSpec& spec) override {
    starts.push_back(spec);
    if (on_start) on_start(spec);
    return started_++;
  }
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
  void wake() override {}
  void write(Stream stream, const std::string& bytes) override {
    (stream == Stream::kOut ? out : err) += bytes;
  }
  bool output_pending() const override { return false; }
  std::string listener_of(std::uint16_t) const override { return ""; }

  bool finished() const { return events_.empty(); }
  // Without the line that sums up the first failure.
  std::string said() const {
    const auto summary = err.find("ddproof run: first failure");
    return err.substr(0, summary);
  }

  SteppedRuntime runtime;
  std::vector<ProcessSpec> starts;
  std::function<void(const ProcessSpec&)> on_start;
  std::vector<std::pair<int, int>> signals;  // process, signal
  std::string out;
  std::string err;

 private:
  std::deque<ProcessEvent> events_;
  Duration pace_;
  int started_ = 0;
};

int launch_script(ScriptedProcesses& processes, int workers, LaunchOptions options = {}) {
  options.local_world_size = workers;
  options.master_port = 0;
  options.command = {"program"};
  const int status = launch(options, processes.runtime, processes);
  EXPECT_TRUE(processes.finished());
  return status;
}

using Signals = std::vector<std::pair<int, int>>;

TEST(Launcher, AKilledWorkerIsTheFirstOfFailuresFoundTogether) {
  ScriptedProcesses processes(
      {end_of(0, 3), end_of(2, 0, SIGKILL), kDeadline, kDeadline, end_of(1, 3)});
  EXPECT_EQ(launch_script(processes, 3), 137);
  EXPECT_EQ(processes.said(),
            "ddproof run: rank 2 (pid 102) was killed by SIGKILL; stopping the other 1\n"
            "ddproof run: rank 0 (pid 100) exited with status 3 after that\n");
  EXPECT_EQ(processes.signals, (Signals{{0, SIGTERM}, {1, SIGTERM}, {2, SIGTERM}}));
}

TEST(Launcher, TheFirstFailureCountsWhateverFollows) {
  ScriptedProcesses processes(
      {end_of(1, 7), kDeadline, kDeadline, end_of(0, 0, SIGTERM), end_of(2, 9)});
  EXPECT_EQ(launch_script(processes, 3), 7);
  EXPECT_EQ(processes.said(),
            "ddproof run: rank 1 (pid 101) exited with status 7; stopping the other 2\n");
}

TEST(Launcher, OthersMaySayWhomTheyLostBeforeTheyAreStopped) {
  ScriptedProcesses processes(
      {end_of(1, 0, SIGKILL), kDeadline, end_of(0, 3), kDeadline, end_of(2, 3), kDeadline});
  EXPECT_EQ(launch_script(processes, 3), 137);
  EXPECT_EQ(processes.said(),
            "ddproof run: rank 1 (pid 101) was killed by SIGKILL; stopping the other 2\n"
            "ddproof run: rank 0 (pid 100) exited with status 3 after that\n"
            "ddproof run: rank 2 (pid 102) exited with status 3 after that\n");
  EXPECT_EQ(processes.signals, Signals{});
}

TEST(Launcher, WhoDoesNotStopIsKilled) {
  ScriptedProcesses processes(
      {end_of(0, 1), kDeadline, kDeadline, end_of(2, 0), kDeadline, end_of(1, 0, 9)});
  EXPECT_EQ(launch_script(processes, 3), 1);
  EXPECT_EQ(processes.said(),
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

std::string variable_of(const ProcessSpec& spec, const std::string& name) {
  for (const std::string& entry : spec.environment) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return "not set";
}

TEST(Launcher, AfterAFailureAllWorkersStartAgain) {
  ScriptedProcesses processes(
      {end_of(1, 7), kDeadline, kDeadline, end_of(0, 0, SIGTERM), end_of(3, 0), end_of(2, 0)});
  EXPECT_EQ(launch_script(processes, 2, {.max_restarts = 3}), 0);
  EXPECT_EQ(processes.err,
            "ddproof run: rank 1 (pid 101) exited with status 7; stopping the other 1\n"
            "ddproof run: starting all 2 workers again: restart 1 of 3\n");
  ASSERT_EQ(processes.starts.size(), 4u);
  for (const int process : {0, 1, 2, 3}) {
    const ProcessSpec& spec = processes.starts[static_cast<std::size_t>(process)];
    EXPECT_EQ(variable_of(spec, "RANK"), std::to_string(process % 2));
    EXPECT_EQ(variable_of(spec, "TORCHELASTIC_RESTART_COUNT"), std::to_string(process / 2));
    EXPECT_EQ(variable_of(spec, "TORCHELASTIC_MAX_RESTARTS"), "3");
  }
  EXPECT_EQ(variable_of(processes.starts[0], "TORCHELASTIC_RUN_ID"),
            variable_of(processes.starts[3], "TORCHELASTIC_RUN_ID"));
}

TEST(Launcher, SignalsAndOutputOfASecondAttemptAreItsOwn) {
  ScriptedProcesses processes(
      {end_of(0, 7),
       kDeadline,  // the first attempt
       {.kind = Kind::kOutput, .process = 1, .stream = Stream::kOut, .bytes = "again\n"},
       received(SIGUSR1),
       end_of(1, 0)});
  EXPECT_EQ(launch_script(processes, 1, {.max_restarts = 1}), 0);
  EXPECT_EQ(processes.out, "[rank 0] again\n");
  EXPECT_EQ(processes.signals, (Signals{{1, SIGUSR1}}));
}

TEST(Launcher, WhenTheRestartsAreUsedUpTheLastFailureCounts) {
  ScriptedProcesses processes({end_of(0, 7), kDeadline, end_of(1, 0, SIGSEGV), kDeadline});
  EXPECT_EQ(launch_script(processes, 1, {.max_restarts = 1}), 128 + SIGSEGV);
  EXPECT_NE(
      processes.err.find(": rank 0 (pid 101) was killed by SIGSEGV (after 1 of 1 restarts)\n"),
      std::string::npos)
      << processes.err;
}

TEST(Launcher, WhoIsToldToEndDoesNotStartAgain) {
  ScriptedProcesses before({received(SIGTERM), end_of(0, 7)});
  EXPECT_EQ(launch_script(before, 1, {.max_restarts = 3}), 143);
  ScriptedProcesses after({end_of(1, 7), kDeadline, received(SIGTERM), end_of(0, 0, SIGTERM)});
  EXPECT_EQ(launch_script(after, 2, {.max_restarts = 3}), 7);
  EXPECT_EQ(after.starts.size(), 2u);
}

// Writes what a failing worker would, when rank 1 starts.
void write_error(ScriptedProcesses& processes, const ProcessSpec& spec) {
  if (variable_of(spec, "RANK") != "1") return;
  const std::string text = R"({"message": {"message": "ValueError: bad\nlabel"}})";
  processes.runtime.files()
      .create(variable_of(spec, kErrorFileVariable))
      ->append(std::as_bytes(std::span(text)));
}

TEST(Launcher, TheLastLineNamesTheFirstFailureWithWhatTheWorkerWrote) {
  ScriptedProcesses processes({end_of(1, 1), kDeadline, kDeadline, end_of(0, 1)});
  processes.on_start = [&](const ProcessSpec& spec) { write_error(processes, spec); };
  EXPECT_EQ(launch_script(processes, 2, {.host = "node7"}), 1);
  const std::string line = processes.err.substr(processes.said().size());
  EXPECT_TRUE(line.starts_with("ddproof run: first failure, 20")) << line;
  EXPECT_TRUE(
      line.ends_with(" UTC on node7: rank 1 (pid 101) exited with status 1: "
                     "ValueError: bad label\n"))
      << line;
  EXPECT_FALSE(
      processes.runtime.files().exists(variable_of(processes.starts[1], kErrorFileVariable)));
}

TEST(Launcher, LogFilesHoldWhatTheirStreamsWrote) {
  const TemporaryFolder folder;
  const auto output = [](int process, Stream stream, const std::string& bytes) -> ProcessEvent {
    return {.kind = Kind::kOutput, .process = process, .stream = stream, .bytes = bytes};
  };
  ScriptedProcesses processes({output(0, Stream::kOut, "a"), output(0, Stream::kOut, "b\n"),
                               output(0, Stream::kErr, "c\n"), output(1, Stream::kOut, "d\n"),
                               output(1, Stream::kErr, "e\n"), end_of(0, 0), end_of(1, 0)});
  EXPECT_EQ(launch_script(processes, 2,
                          {.run_id = "job",
                           .log_directory = folder.path(),
                           .redirects = {"--redirects", "0:1", 2},
                           .tee = {"--tee", "1:2", 2}}),
            0);
  EXPECT_EQ(processes.out, "[rank 1] d\n");
  FileSystem& files = processes.runtime.files();
  const std::vector<std::string> runs = files.list(folder.path());
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_TRUE(runs[0].starts_with("job_")) << runs[0];
  const std::string attempt = folder.path() + "/" + runs[0] + "/attempt_0";
  EXPECT_EQ(processes.err, "ddproof run: the workers' files are in " + folder.path() + "/" +
                               runs[0] + "\n[rank 0] c\n[rank 1] e\n");
  const auto text_of = [&](const std::string& name) {
    const std::vector<std::byte> bytes = read_file(files, attempt + name);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text_of("/0/stdout.log"), "ab\n");
  EXPECT_EQ(text_of("/1/stderr.log"), "e\n");
  EXPECT_EQ(files.list(attempt + "/0"), std::vector<std::string>{"stdout.log"});
  EXPECT_EQ(files.list(attempt + "/1"), std::vector<std::string>{"stderr.log"});
  EXPECT_EQ(variable_of(processes.starts[1], kErrorFileVariable), attempt + "/1/error.json");
  EXPECT_EQ(variable_of(processes.starts[1], "TORCHELASTIC_RUN_ID"), "job");
}

TEST(Launcher, TheFilterHidesOtherRanksOutput) {
  const auto line = [](int process) -> ProcessEvent {
    return {.kind = Kind::kOutput, .process = process, .stream = Stream::kOut, .bytes = "x\n"};
  };
  ScriptedProcesses processes(
      {line(0), line(1), line(2), end_of(0, 0), end_of(1, 0), end_of(2, 0)});
  EXPECT_EQ(launch_script(processes, 3, {.local_ranks = {0, 2}}), 0);
  EXPECT_EQ(processes.out, "[rank 0] x\n[rank 2] x\n");
}

}  // namespace
}  // namespace ddproof
