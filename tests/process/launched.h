// A program that a test started: its output, its end, and signals to it. Knows nothing of the code
// under test. Reads block; the test's timeout ends one that waits for ever.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ddproof {

struct LaunchedOptions {
  std::vector<std::string> environment;  // NAME=VALUE on top of ours; "NAME" unsets
  std::vector<int> ignored_signals;
  int extra_descriptor = -1;      // left open for the program, as this number
  bool output_has_reader = true;  // false: the pipe's other end is closed from the start
};

class Launched {
 public:
  explicit Launched(const std::vector<std::string>& command, const LaunchedOptions& options = {});
  // Kills it if it still runs, and reaps it.
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int signal) const;
  void write_input(const std::string& text);
  void close_input();
  // Reads until `text` has come `times` times on that stream; all that came so far.
  const std::string& read_out_until(const std::string& text, int times = 1);
  const std::string& read_err_until(const std::string& text, int times = 1);

  // Closes the input, reads all output, and reaps. As a shell gives it: 128 + the signal.
  int wait();
  // Reaps without reading.
  int wait_without_reading();
  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  const std::string& read_until(int descriptor, std::string& text, const std::string& expected,
                                int times);
  int reap();

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int error_ = -1;
  std::string out_;
  std::string err_;
};

// `ddproof run` with these arguments.
std::vector<std::string> run_command_line(const std::vector<std::string>& arguments);
// The same, followed by a shell script as the program.
std::vector<std::string> run_script(std::vector<std::string> flags, const std::string& script);

std::vector<std::string> lines_of(const std::string& text);
bool exists(pid_t pid);

// While it lives, descendants that lose their parent become children of this process.
class Subreaper {
 public:
  Subreaper();
  ~Subreaper();
  // Waits for this orphan; its status as a shell gives it.
  static int wait_for(pid_t orphan);
};

}  // namespace ddproof
