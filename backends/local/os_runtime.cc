#include "backends/local/os_runtime.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

class ThreadTask final : public Task {
 public:
  ThreadTask(const std::string& name, std::function<void()> body) : body_(std::move(body)) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      throw ResourceError("task \"" + name + "\": the system starts no more threads (" +
                          error.code().message() + "); use fewer ranks or raise `ulimit -u`");
    }
    // For debuggers; the kernel keeps 15 characters.
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }
  ~ThreadTask() override { DDPROOF_CHECK(!thread_.joinable()); }

  void join() override {
    if (thread_.joinable()) thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // A write to a connection that the peer has closed must fail, not end the process; libraries
  // (Gloo among them) do not all say MSG_NOSIGNAL.
  static void block_sigpipe() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  }

  void run() {
    block_sigpipe();
    try {
      body_();
    } catch (...) {  // any type: test libraries throw ones that are no std::exception
      error_ = std::current_exception();
    }
    body_ = nullptr;  // what it holds goes when the task ends, not when somebody joins
  }

  std::function<void()> body_;
  std::exception_ptr error_;  // written before the thread ends, read after joining it
  std::thread thread_;
};

class OsMonitor final : public Monitor {
 public:
  void lock() override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }

  bool wait(TimePoint deadline, const WaitReason&) override {
    std::unique_lock lock(mutex_, std::adopt_lock);
    bool in_time = true;
    if (deadline == kForever) {
      changed_.wait(lock);
    } else {
      const std::chrono::steady_clock::time_point until(deadline);
      in_time = changed_.wait_until(lock, until) == std::cv_status::no_timeout;
    }
    lock.release();  // the caller goes on holding it
    return in_time;
  }

  void notify_all() override { changed_.notify_all(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class EnvironmentCopy final : public Environment {
 public:
  EnvironmentCopy() {
    if (environ == nullptr) return;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      const auto equals = text.find('=');
      if (equals == std::string_view::npos) continue;
      // emplace keeps the first of two equal names, as getenv does.
      values_.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }

  std::optional<std::string> get(std::string_view name) const override {
    const auto found = values_.find(name);
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }

  std::vector<std::string> all() const override {
    std::vector<std::string> result;
    for (const auto& [name, value] : values_) result.push_back(name + "=" + value);
    return result;
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace

OsRuntime::OsRuntime(std::uint64_t seed)
    : environment_(std::make_unique<EnvironmentCopy>()), random_(seed) {}

OsRuntime::~OsRuntime() = default;

TimePoint OsRuntime::now() const { return std::chrono::steady_clock::now().time_since_epoch(); }

Duration OsRuntime::wall_clock() const {
  return std::chrono::system_clock::now().time_since_epoch();
}

void OsRuntime::sleep_for(Duration duration) { std::this_thread::sleep_for(duration); }

void OsRuntime::charge(Duration) {}

std::unique_ptr<Task> OsRuntime::spawn(std::string name, std::function<void()> body) {
  return std::make_unique<ThreadTask>(name, std::move(body));
}

std::unique_ptr<Monitor> OsRuntime::make_monitor() { return std::make_unique<OsMonitor>(); }

std::uint64_t OsRuntime::random_u64() {
  std::scoped_lock lock(random_mutex_);
  return random_();
}

FileSystem& OsRuntime::files() { return files_; }

const Environment& OsRuntime::environment() const { return *environment_; }

}  // namespace ddproof
