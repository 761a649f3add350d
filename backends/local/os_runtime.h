// The operating system's Runtime: what real processes run on.
//
// Invariants: now() is the steady clock; tasks are std::threads with SIGPIPE blocked (a process
// that one of them starts inherits that: unblock it in the child before exec); the environment is
// the one at construction; two Runtimes made with one seed give the same random stream. Threads:
// every method from any thread of the process.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "backends/api/runtime.h"
#include "backends/local/os_files.h"

namespace ddproof {

class OsRuntime : public Runtime {
 public:
  explicit OsRuntime(std::uint64_t seed = 0);
  ~OsRuntime() override;

  TimePoint now() const override;
  Duration wall_clock() const override;
  void sleep_for(Duration duration) override;
  // Real work takes real time: nothing to add.
  void charge(Duration compute_cost) override;
  // Throws ResourceError when the system starts no more threads.
  std::unique_ptr<Task> spawn(std::string name, std::function<void()> body) override;
  std::unique_ptr<Monitor> make_monitor() override;
  std::uint64_t random_u64() override;
  FileSystem& files() override;
  const Environment& environment() const override;

 private:
  OsFileSystem files_;
  std::unique_ptr<Environment> environment_;
  std::mutex random_mutex_;  // guards random_
  std::mt19937_64 random_;
};

}  // namespace ddproof
