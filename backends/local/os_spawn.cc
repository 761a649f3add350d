#include "backends/local/os_spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {
namespace {

// execvpe() says "permission denied" also when a folder of PATH may not be searched and no other
// one has the program.
bool is_nowhere_in_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return false;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    if (::access((folder + "/" + program).c_str(), F_OK) == 0) return false;
  }
  return true;
}

[[noreturn]] void refuse(const ProcessSpec& spec, int error) {
  if (error == EACCES && is_nowhere_in_path(spec.command[0])) error = ENOENT;
  throw ConfigError("cannot start \"" + spec.command[0] + "\": " + std::strerror(error) +
                    "; give a program that this user may run");
}

[[noreturn]] void refuse_resource(const char* what, int error) {
  throw ResourceError(std::string("the system gives no more ") + what + " (" +
                      std::strerror(error) + "); start fewer ranks, or raise the limits of ulimit");
}

// Closes its ends unless they were given away.
struct Pipe {
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) refuse_resource("pipes", errno);
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_read() { close_end(ends[0]); }
  void close_write() { close_end(ends[1]); }
  int release_read() { return std::exchange(ends[0], -1); }

  int ends[2] = {-1, -1};

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

// For exec: pointers to the strings, and a null.
std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

struct ChildPlan {
  char* const* command;
  char* const* environment;
  const SpawnSignals* signals;
  bool inherit_input;
  int output;
  int error;
  int report;  // takes errno when the program cannot be started
  pid_t parent;
};

// In the child. Only calls that are safe after fork() in a process with threads.
[[noreturn]] void become_program(const ChildPlan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(128 + SIGKILL);  // it died before the line above
  if (!plan.inherit_input || ::isatty(STDIN_FILENO) == 1) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
  }
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.error, STDERR_FILENO);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  struct sigaction action {};
  action.sa_handler = plan.signals->ignore_pipe ? SIG_IGN : SIG_DFL;
  ::sigaction(SIGPIPE, &action, nullptr);
  ::sigprocmask(SIG_SETMASK, &plan.signals->mask, nullptr);
  ::execvpe(plan.command[0], plan.command, plan.environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.report, &error, sizeof error);
  ::_exit(127);
}

// The error that the child reports, or 0 when its program runs.
int await_program(Pipe& report) {
  report.close_write();
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(report.ends[0], &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  return count == sizeof error ? error : 0;
}

}  // namespace

Spawned spawn_process(const ProcessSpec& spec, const SpawnSignals& signals) {
  if (spec.command.empty()) throw ConfigError("no program to start");
  Pipe output;
  Pipe error;
  Pipe report;
  const std::vector<char*> command = pointers(spec.command);
  const std::vector<char*> environment = pointers(spec.environment);
  const ChildPlan plan{command.data(), environment.data(), &signals,       spec.inherit_input,
                       output.ends[1], error.ends[1],      report.ends[1], ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) refuse_resource("processes", errno);
  if (pid == 0) become_program(plan);
  if (const int failure = await_program(report)) {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) < 0 && errno == EINTR) {
    }
    refuse(spec, failure);
  }
  for (const int end : {output.ends[0], error.ends[0]}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  return {pid, output.release_read(), error.release_read()};
}

}  // namespace ddproof
