#include "backends/local/os_processes.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "backends/api/check.h"
#include "backends/local/os_children.h"
#include "backends/local/os_port_holder.h"
#include "backends/local/os_spawn.h"

namespace ddproof {
namespace {

constexpr int kHandled[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr std::size_t kReadBytes = 64 * 1024;
// Beyond this backlog of our own output, children must wait with theirs.
constexpr std::size_t kBacklogBytes = 1024 * 1024;

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : kHandled) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

int milliseconds_until(TimePoint deadline, TimePoint now) {
  if (deadline == kForever) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(std::max(deadline - now, Duration{}));
  return static_cast<int>(std::min<std::int64_t>(left.count(), INT_MAX));
}

void reap(pid_t child) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED) < 0 && errno == EINTR) {
  }
}

ProcessEnd end_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {info.si_status, 0};
  return {0, info.si_status};
}

}  // namespace

OsProcesses::OsProcesses(Runtime& runtime) : runtime_(runtime) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &original_subreaper_);
  // Orphans of a child that we did not start would be taken for our children's.
  adopts_ = children_of_this_process().empty();
  if (adopts_) ::prctl(PR_SET_CHILD_SUBREAPER, 1UL);
  const sigset_t handled = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &handled, &original_mask_);
  signal_descriptor_ = ::signalfd(-1, &handled, SFD_NONBLOCK | SFD_CLOEXEC);
  wake_descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  DDPROOF_CHECK(signal_descriptor_ >= 0 && wake_descriptor_ >= 0);
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, &original_pipe_action_);
  action.sa_handler = SIG_DFL;  // were it ignored, ends could not be collected
  ::sigaction(SIGCHLD, &action, &original_child_action_);
}

OsProcesses::~OsProcesses() {
  for (Child& child : children_) {
    for (int& descriptor : child.output) {
      if (descriptor >= 0) ::close(descriptor);
    }
    if (child.ended) continue;
    ::kill(-child.pid, SIGKILL);
    reap(child.pid);
  }
  kill_orphans();
  ::prctl(PR_SET_CHILD_SUBREAPER, static_cast<unsigned long>(original_subreaper_));
  ::close(signal_descriptor_);
  ::close(wake_descriptor_);
  ::sigaction(SIGPIPE, &original_pipe_action_, nullptr);
  ::sigaction(SIGCHLD, &original_child_action_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

// A child keeps its number until it is reaped, so no stranger can have got it.
void OsProcesses::kill_orphans() {
  // What a killed one had started is ours in the next round. One of another user cannot be killed.
  for (bool killed = adopts_; killed;) {
    killed = false;
    for (const pid_t orphan : children_of_this_process()) {
      if (::kill(orphan, SIGKILL) != 0) continue;
      reap(orphan);
      killed = true;
    }
  }
}

int OsProcesses::start(const ProcessSpec& spec) {
  const Spawned spawned = spawn_process(
      spec, {.mask = original_mask_, .ignore_pipe = original_pipe_action_.sa_handler == SIG_IGN});
  children_.push_back({spawned.pid, {spawned.output, spawned.error}, false});
  return static_cast<int>(children_.size()) - 1;
}

std::int64_t OsProcesses::pid(int process) const {
  return children_.at(static_cast<std::size_t>(process)).pid;
}

void OsProcesses::signal(int process, int signal) {
  const Child& child = children_.at(static_cast<std::size_t>(process));
  // Not reaped, so the number is still this process's own.
  if (!child.ended) ::kill(-child.pid, signal);
}

ProcessEvent OsProcesses::next_event(TimePoint deadline) {
  while (events_.empty()) {
    poll_once(deadline);
    if (events_.empty() && runtime_.now() >= deadline) return {};
  }
  ProcessEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void OsProcesses::wake() {
  const std::uint64_t one = 1;
  DDPROOF_CHECK(::write(wake_descriptor_, &one, sizeof one) == sizeof one);
}

void OsProcesses::poll_once(TimePoint deadline) {
  struct Source {
    int process = -1;  // -1: our own output
    Stream stream = Stream::kOut;
  };
  std::vector<pollfd> descriptors = {{signal_descriptor_, POLLIN, 0},
                                     {wake_descriptor_, POLLIN, 0}};
  std::vector<Source> sources(descriptors.size());
  std::size_t backlog = 0;
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    const std::size_t unsent = own_output_[static_cast<int>(stream)].unsent();
    backlog += unsent;
    if (unsent == 0) continue;
    descriptors.push_back({stream == Stream::kOut ? STDOUT_FILENO : STDERR_FILENO, POLLOUT, 0});
    sources.push_back({-1, stream});
  }
  for (std::size_t i = 0; i < children_.size() && backlog < kBacklogBytes; ++i) {
    for (const Stream stream : {Stream::kOut, Stream::kErr}) {
      const int descriptor = children_[i].output[static_cast<int>(stream)];
      if (descriptor < 0) continue;
      descriptors.push_back({descriptor, POLLIN, 0});
      sources.push_back({static_cast<int>(i), stream});
    }
  }
  if (::poll(descriptors.data(), descriptors.size(),
             milliseconds_until(deadline, runtime_.now())) <= 0) {
    return;
  }
  for (std::size_t i = 2; i < descriptors.size(); ++i) {
    if (descriptors[i].revents == 0) continue;
    if (sources[i].process < 0) {
      flush(sources[i].stream);
    } else {
      read_output(sources[i].process, sources[i].stream);
    }
  }
  if (descriptors[0].revents != 0) read_signals();
  std::uint64_t times = 0;
  if (descriptors[1].revents != 0 && ::read(wake_descriptor_, &times, sizeof times) > 0) {
    events_.push_back({.kind = ProcessEvent::Kind::kWoken});
  }
}

void OsProcesses::read_signals() {
  signalfd_siginfo info{};
  while (::read(signal_descriptor_, &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      collect_ended();
    } else {
      events_.push_back({.kind = ProcessEvent::Kind::kSignal, .signal = signal});
    }
  }
}

// Reads what is there, up to kReadBytes.
void OsProcesses::read_output(int process, Stream stream) {
  int& descriptor = children_[static_cast<std::size_t>(process)].output[static_cast<int>(stream)];
  if (descriptor < 0) return;
  std::string bytes(kReadBytes, '\0');
  const ssize_t count = ::read(descriptor, bytes.data(), bytes.size());
  if (count > 0) {
    bytes.resize(static_cast<std::size_t>(count));
    events_.push_back({.kind = ProcessEvent::Kind::kOutput,
                       .process = process,
                       .stream = stream,
                       .bytes = std::move(bytes)});
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    ::close(descriptor);
    descriptor = -1;
  }
}

void OsProcesses::collect_ended() {
  siginfo_t info{};
  // Left unreaped until here: so long the process number cannot be given to a stranger.
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const auto child = std::ranges::find_if(
        children_, [&](const Child& each) { return !each.ended && each.pid == info.si_pid; });
    if (child != children_.end()) {
      finish(static_cast<int>(child - children_.begin()));
    } else {
      reap(info.si_pid);  // an orphan
    }
    info.si_pid = 0;
  }
}

void OsProcesses::finish(int process) {
  Child& child = children_[static_cast<std::size_t>(process)];
  ::kill(-child.pid, SIGKILL);  // what it left behind
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    // All that it wrote is in the pipe, which holds at most 1 MiB; a process that left the group
    // may go on writing, so read no more than that.
    int& descriptor = child.output[static_cast<int>(stream)];
    for (int reads = 0; reads < 16 && descriptor >= 0; ++reads) {
      const std::size_t before = events_.size();
      read_output(process, stream);
      if (events_.size() == before) break;
    }
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
  siginfo_t info{};
  DDPROOF_CHECK(::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED) == 0);
  child.ended = true;
  events_.push_back({.kind = ProcessEvent::Kind::kEnd, .process = process, .end = end_of(info)});
}

void OsProcesses::write(Stream stream, const std::string& bytes) {
  Output& output = own_output_[static_cast<int>(stream)];
  if (!output.closed) output.pending += bytes;
}

bool OsProcesses::output_pending() const {
  return !own_output_[0].pending.empty() || !own_output_[1].pending.empty();
}

void OsProcesses::flush(Stream stream) {
  Output& output = own_output_[static_cast<int>(stream)];
  // A pipe that polls as writable takes this much without blocking.
  const std::size_t count = std::min<std::size_t>(output.unsent(), PIPE_BUF);
  const int descriptor = stream == Stream::kOut ? STDOUT_FILENO : STDERR_FILENO;
  const ssize_t written = ::write(descriptor, output.pending.data() + output.sent, count);
  if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (written < 0) {
    output.closed = true;
    if (errno == EPIPE) {
      close_outputs(stream);
    } else {
      events_.push_back({.kind = ProcessEvent::Kind::kUnwritable,
                         .stream = stream,
                         .bytes = std::system_category().message(errno)});
    }
  }
  output.sent =
      output.closed ? output.pending.size() : output.sent + static_cast<std::size_t>(written);
  if (output.unsent() == 0 || output.sent >= kBacklogBytes) {
    output.pending.erase(0, output.sent);
    output.sent = 0;
    if (!output_pending()) events_.push_back({.kind = ProcessEvent::Kind::kFlushed});
  }
}

// Our reader is gone: the children learn of it as if they had written to it themselves.
void OsProcesses::close_outputs(Stream stream) {
  for (Child& child : children_) {
    int& descriptor = child.output[static_cast<int>(stream)];
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
}

std::string OsProcesses::listener_of(std::uint16_t port) const { return port_holder(port); }

}  // namespace ddproof
