#include "tests/process/launched.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "backends/api/check.h"

namespace ddproof {
namespace {

int shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

// Appends what comes next; false at the end.
bool read_some(int descriptor, std::string& text) {
  char bytes[65536];
  const ssize_t size = ::read(descriptor, bytes, sizeof bytes);
  if (size > 0) text.append(bytes, static_cast<std::size_t>(size));
  return size > 0;
}

[[noreturn]] void become(const std::vector<std::string>& command, const LaunchedOptions& options) {
  for (const int signal : options.ignored_signals) ::signal(signal, SIG_IGN);
  for (const std::string& entry : options.environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos) {
      ::unsetenv(entry.c_str());
    } else {
      ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
  }
  if (options.extra_descriptor >= 0) ::dup2(0, options.extra_descriptor);
  std::vector<char*> pointers;
  for (const std::string& word : command) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  ::_exit(126);
}

}  // namespace

Launched::Launched(const std::vector<std::string>& command, const LaunchedOptions& options) {
  int input[2], output[2], error[2];
  for (int* ends : {input, output, error}) DDPROOF_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  if (!options.output_has_reader) ::close(std::exchange(output[0], -1));
  pid_ = ::fork();
  DDPROOF_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::dup2(input[0], STDIN_FILENO);
    ::dup2(output[1], STDOUT_FILENO);
    ::dup2(error[1], STDERR_FILENO);
    become(command, options);
  }
  for (const int end : {input[0], output[1], error[1]}) ::close(end);
  input_ = input[1];
  output_ = output[0];
  error_ = error[0];
}

Launched::~Launched() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    reap();
  }
  close_input();
  if (output_ >= 0) ::close(output_);
  ::close(error_);
}

void Launched::signal(int signal) const { DDPROOF_CHECK(::kill(pid_, signal) == 0); }

void Launched::write_input(const std::string& text) {
  DDPROOF_CHECK(::write(input_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void Launched::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

const std::string& Launched::read_until(int descriptor, std::string& text,
                                        const std::string& expected, int times) {
  while (count(text, expected) < times) {
    if (!read_some(descriptor, text)) {
      throw std::runtime_error("ended without \"" + expected + "\"; output: " + text);
    }
  }
  return text;
}

const std::string& Launched::read_out_until(const std::string& text, int times) {
  return read_until(output_, out_, text, times);
}

const std::string& Launched::read_err_until(const std::string& text, int times) {
  return read_until(error_, err_, text, times);
}

int Launched::wait() {
  close_input();
  pollfd sources[] = {{output_, POLLIN, 0}, {error_, POLLIN, 0}};
  while (sources[0].fd >= 0 || sources[1].fd >= 0) {
    if (::poll(sources, 2, -1) < 0) continue;
    if (sources[0].revents != 0 && !read_some(output_, out_)) sources[0].fd = -1;
    if (sources[1].revents != 0 && !read_some(error_, err_)) sources[1].fd = -1;
  }
  return reap();
}

int Launched::wait_without_reading() { return reap(); }

int Launched::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) DDPROOF_CHECK(errno == EINTR);
  pid_ = -1;
  return shell_status(status);
}

std::vector<std::string> run_command_line(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {DDPROOF_PROGRAM, "run"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

std::vector<std::string> run_script(std::vector<std::string> flags, const std::string& script) {
  for (const char* word : {"--standalone", "--", "sh", "-c"}) flags.emplace_back(word);
  flags.push_back(script);
  return run_command_line(flags);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

Subreaper::Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
Subreaper::~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

int Subreaper::wait_for(pid_t orphan) {
  int status = 0;
  while (::waitpid(orphan, &status, 0) < 0) {
    // Not ours yet: its parent is about to end.
    DDPROOF_CHECK(errno == EINTR || errno == ECHILD);
    DDPROOF_CHECK(exists(orphan));
  }
  return shell_status(status);
}

}  // namespace ddproof
