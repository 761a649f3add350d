// The operating system's processes and signals (backends/api/processes.h), on Linux.
//
// While the object lives: SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGCHLD are
// blocked in the thread that made it, and in threads started later by it, and read as events;
// SIGPIPE is ignored. What was ignored at the start stays ignored, here and in the children;
// children get the dispositions and the mask that we were started with.
//
// A child runs in a process group of its own, is killed by the kernel when this thread ends
// (PR_SET_PDEATHSIG), and inherits no descriptor but 0, 1 and 2. Orphans of our children, whatever
// session they moved to, are adopted (PR_SET_CHILD_SUBREAPER) and killed by the destructor; not so
// in a process that had children before, since theirs cannot be told from ours.
#pragma once

#include <csignal>
#include <deque>
#include <string>
#include <vector>

#include "backends/api/processes.h"
#include "backends/api/runtime.h"

namespace ddproof {

class OsProcesses final : public Processes {
 public:
  // Requires: at most one at a time in a process; made before threads that it should govern;
  // descriptors 0 to 2 are taken (os_descriptors.h); nobody else in the process starts or reaps
  // children while it lives. `runtime` must outlive it.
  explicit OsProcesses(Runtime& runtime);
  ~OsProcesses() override;
  OsProcesses(const OsProcesses&) = delete;
  OsProcesses& operator=(const OsProcesses&) = delete;

  int start(const ProcessSpec& spec) override;
  std::int64_t pid(int process) const override;
  void signal(int process, int signal) override;
  ProcessEvent next_event(TimePoint deadline) override;
  void wake() override;
  void write(Stream stream, const std::string& bytes) override;
  bool output_pending() const override;
  std::string listener_of(std::uint16_t port) const override;

 private:
  struct Child {
    pid_t pid = -1;
    int output[2] = {-1, -1};  // read ends, by Stream; -1: closed
    bool ended = false;
  };
  struct Output {
    std::size_t unsent() const { return pending.size() - sent; }

    std::string pending;   // grows by what children write only while less than a backlog is unsent
    std::size_t sent = 0;  // of pending, and at most a backlog
    bool closed = false;   // nobody reads it, or a write failed
  };

  void poll_once(TimePoint deadline);
  void read_signals();
  void read_output(int process, Stream stream);
  void collect_ended();
  void kill_orphans();
  void finish(int process);
  void flush(Stream stream);
  void close_outputs(Stream stream);

  Runtime& runtime_;
  std::vector<Child> children_;
  std::deque<ProcessEvent> events_;
  Output own_output_[2];
  int signal_descriptor_ = -1;
  int wake_descriptor_ = -1;
  bool adopts_ = false;
  int original_subreaper_ = 0;
  sigset_t original_mask_{};
  struct sigaction original_pipe_action_ {};
  struct sigaction original_child_action_ {};
};

}  // namespace ddproof
