// What `ddproof run` adds to a program's own time: two no-op programs started directly, beside the
// same two under `ddproof run`, and under the real torchrun where it is installed. Goal: under 0.1
// s. And how long a program takes to refuse a bad environment value, its own start included. Goal:
// under 0.1 s.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "backends/api/check.h"

namespace ddproof {
namespace {

constexpr int kRuns = 21;
constexpr int kTorchrunRuns = 5;  // each takes seconds
constexpr const char* kTorchrun = "/usr/bin/torchrun";

pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = -1;
  DDPROOF_CHECK(posix_spawnp(&pid, words[0], nullptr, nullptr, words.data(), nullptr) == 0);
  return pid;
}

void await(pid_t pid, int exit_status = 0) {
  int status = 0;
  DDPROOF_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  DDPROOF_CHECK(WEXITSTATUS(status) == exit_status);
}

// Prints and returns the median in seconds.
double measure(const char* name, const std::function<void()>& run, int runs = kRuns) {
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  fmt::print("{:<28} {:7.2f} ms (min {:.2f}, max {:.2f}, {} runs)\n", name, median * 1e3,
             seconds.front() * 1e3, seconds.back() * 1e3, runs);
  return median;
}

// Debian's needs -r, since its default breaks under this Python.
void compare_with_torchrun(double launched) {
  if (access(kTorchrun, X_OK) != 0) {
    return fmt::print("torchrun: not measured, python3-torch is not installed\n");
  }
  const auto run = [] {
    await(start({"sh", "-c",
                 "logs=$(mktemp -d) && \"$0\" --rdzv_backend c10d --rdzv_endpoint localhost:0 "
                 "--monitor_interval 0.1 --nproc_per_node 2 -r 1 -t 1 --log_dir \"$logs\" "
                 "--no_python true 2>/dev/null; status=$?; rm -r \"$logs\"; exit $status",
                 kTorchrun}));
  };
  const double theirs = measure("two programs by torchrun", run, kTorchrunRuns);
  fmt::print("{:<28} {:7.1f}\n", "ratio", theirs / launched);
}

void compare() {
  const double direct = measure("two programs", [] {
    const pid_t pids[] = {start({"true"}), start({"true"})};
    for (const pid_t pid : pids) await(pid);
  });
  const double launched = measure("two programs by ddproof run", [] {
    await(start({DDPROOF_PROGRAM, "run", "--standalone", "--nproc-per-node", "2", "--", "true"}));
  });
  fmt::print("{:<28} {:7.2f} ms, ratio {:.1f} (goal: under 100 ms added)\n", "added",
             (launched - direct) * 1e3, launched / direct);
  compare_with_torchrun(launched);
  measure("a bad RANK refused", [] {
    await(start({"env", "RANK=two", "LOCAL_RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost",
                 "MASTER_PORT=29500", "sh", "-c",
                 "exec \"$0\" train --backend gloo --data . 2>/dev/null", DDPROOF_PROGRAM}),
          2);
  });
}

}  // namespace
}  // namespace ddproof

int main() { ddproof::compare(); }
