// The workers of one node, from their start until all have ended: one attempt of launcher.h, whose
// rules they follow. Threads: one task.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/api/processes.h"
#include "backends/api/runtime.h"
#include "reference/launch/worker_output.h"

namespace ddproof {

// One worker's program, and where its output goes.
struct WorkerSpec {
  ProcessSpec process;
  WorkerOutput output;
};

// How a group ended.
struct GroupEnd {
  int status = 0;                   // 0: all workers returned 0
  std::optional<int> first_failed;  // local rank; empty also when a signal came before it
  std::string failure;              // what the first failure was: "rank 1 (pid 9) exited with ..."
  Duration failed_at{0};            // on the wall clock
  bool was_signalled = false;       // the launcher was told to end
  bool was_stopped = false;         // `must_stop` said so before any failure
  bool was_told_late = false;       // to end, while flush() waited
  bool output_lost = false;
};

// "SIGTERM", or "signal 70".
std::string signal_name(int signal);

class WorkerGroup {
 public:
  // `first_rank` is the rank of local rank 0.
  WorkerGroup(Runtime& runtime, Processes& processes, Duration grace, int first_rank)
      : runtime_(runtime), processes_(processes), grace_(grace), first_rank_(first_rank) {}

  // Starts workers with local ranks 0, 1, ... Throws as Processes::start().
  void start(std::vector<WorkerSpec> workers);
  // Returns when all have ended. When `must_stop` says so, which is asked after each event, workers
  // have kReportTime before they are asked to stop; `on_failure` hears of a failure before that.
  GroupEnd run(const std::function<bool()>& must_stop,
               const std::function<void(const GroupEnd&)>& on_failure);
  // Waits until our reader has all output, not long when we were told to end; the end, with what
  // became known meanwhile. Requires: run() returned.
  GroupEnd flush();

 private:
  struct Worker {
    WorkerOutput output;
    bool running = true;
  };

  void handle(const ProcessEvent& event);
  void on_output(const ProcessEvent& event);
  void on_end(const ProcessEvent& event);
  void on_signal(int signal);
  // Whether it is the last one again, too soon to count; remembers it.
  bool repeats(int signal);
  void on_unwritable(const ProcessEvent& event);
  // True when there is a first failure that was none before.
  bool decide_failure();
  void on_deadline();
  void on_must_stop();
  // Asks all to stop, and sets how long they may take.
  void stop(int signal);
  void send(int signal);
  void kill_late(const std::string& reason);

  int size() const { return static_cast<int>(workers_.size()); }
  int running() const;
  bool failed() const { return end_.status != 0; }
  bool stopping() const { return stop_deadline_ != kForever || killed_; }
  Worker& worker_of(const ProcessEvent& event) {
    return workers_[static_cast<std::size_t>(event.process - first_process_)];
  }
  void say(const std::string& text);
  std::string name(int worker) const;

  Runtime& runtime_;
  Processes& processes_;
  Duration grace_;
  int first_rank_;
  int first_process_ = 0;  // number of local rank 0
  std::vector<Worker> workers_;
  std::map<int, ProcessEnd> failures_;    // found together, not decided on yet
  TimePoint report_deadline_ = kForever;  // set between the first failure and SIGTERM
  TimePoint stop_deadline_ = kForever;    // set between SIGTERM and SIGKILL
  bool killed_ = false;
  int last_signal_ = 0;  // 0: none yet
  TimePoint last_signal_at_{0};
  GroupEnd end_;
};

}  // namespace ddproof
