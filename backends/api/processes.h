// Child processes and signals as a launcher sees them: start, signal, and one stream of events.
//
// Children never outlive the one who started them: they are killed when it ends, however it ends.
// What they left behind is killed when the object goes. Nothing else is ever signalled. Numbers of
// processes are 0, 1, ... in the order of start(). Implementation: backends/local/os_processes.h.
// Threads: one task, which must live as long as the object; wake() from any task.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/api/time.h"

namespace ddproof {

struct ProcessSpec {
  std::vector<std::string> command;      // the program, looked up in PATH, and its arguments
  std::vector<std::string> environment;  // NAME=VALUE, nothing else is passed on
  bool inherit_input = false;            // read our input, unless that is a terminal
};

struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;  // 0: it exited by itself

  bool succeeded() const { return exit_code == 0 && signal == 0; }
  // As a shell gives it: the exit code, or 128 + the signal.
  int status() const { return signal == 0 ? exit_code : 128 + signal; }
  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

enum class Stream : std::uint8_t { kOut, kErr };

struct ProcessEvent {
  enum class Kind : std::uint8_t {
    kOutput,   // `process` wrote `bytes` to `stream`
    kEnd,      // `process` ended with `end`; all it wrote was given before
    kSignal,   // we were sent `signal`: one of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2
               // that was not ignored when the object was made
    kFlushed,  // all that write() was given has gone out, or is dropped
    kUnwritable,  // our own `stream` takes no more, for the reason in `bytes`; what is still to be
                  // written to it is dropped. No event when its reader is gone.
    kWoken,       // wake() was called since the last one
    kDeadline,    // the deadline passed
  };
  Kind kind = Kind::kDeadline;
  int process = -1;
  Stream stream = Stream::kOut;
  std::string bytes;
  ProcessEnd end;
  int signal = 0;
};

class Processes {
 public:
  virtual ~Processes() = default;  // kills what still runs

  // Returns the new process's number when its program has been started.
  // Throws ConfigError naming the program when it cannot be, ResourceError when the system gives no
  // more processes or descriptors.
  virtual int start(const ProcessSpec& spec) = 0;
  virtual std::int64_t pid(int process) const = 0;
  // Sends a signal to the process and to what it started in its process group; nothing when it
  // ended.
  virtual void signal(int process, int signal) = 0;

  // The next event; waits for it up to `deadline`. What a process that ended left behind in its
  // process group is killed.
  virtual ProcessEvent next_event(TimePoint deadline) = 0;
  // Makes next_event(), now or later, return kWoken.
  virtual void wake() = 0;

  // Appends to our own output. Bytes go out within next_event(), so that a reader who is slow never
  // keeps signals waiting; once the reader is gone, or after kUnwritable, they are dropped.
  virtual void write(Stream stream, const std::string& bytes) = 0;
  virtual bool output_pending() const = 0;

  // Who listens on a TCP port of this machine, as "NAME (pid N)"; empty when nobody is seen.
  virtual std::string listener_of(std::uint16_t port) const = 0;
};

}  // namespace ddproof
