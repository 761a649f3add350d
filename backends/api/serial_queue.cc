#include "backends/api/serial_queue.h"

#include <list>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {

// Shared by the queue, its task and all jobs, so that a job's handle may outlive the queue.
struct SerialQueue::State {
  explicit State(Runtime& r) : runtime(r), monitor(r.make_monitor()) {}
  Runtime& runtime;
  std::unique_ptr<Monitor> monitor;      // guards all below, and every Job's done and error
  std::string who;                       // the group, once there was a call
  std::list<std::shared_ptr<Job>> jobs;  // an empty deque takes half a kilobyte
  std::exception_ptr failed;
  bool closing = false;
};

// One object holds all of a call: thousands of simulated ranks make them in turn, and each piece of
// memory of its own is one more that is not in the cache.
class SerialQueue::Job final : public Work {
 public:
  Job(std::shared_ptr<State> state, Call&& call)
      : state_(std::move(state)), call_(std::move(call)), what_(call_.describe()) {}

  bool is_completed() override {
    state_->runtime.now();  // programs poll this: the clock, unlike the lock, may end a dead rank
    MonitorLock lock(*state_->monitor);
    return done_;
  }

  void wait(Duration timeout) override {
    const TimePoint deadline = deadline_after(state_->runtime.now(), timeout);
    MonitorLock lock(*state_->monitor);
    while (!done_) {
      if (!state_->monitor->wait(deadline, {.what = what_, .site = call_.site, .is_local = true}) &&
          !done_) {
        throw CommError(CommErrorKind::kTimeout,
                        state_->who + " " + what_ +
                            ": still running when the caller's wait ended; wait longer or abort");
      }
    }
    if (error_) std::rethrow_exception(error_);
  }

  std::exception_ptr error() override {
    MonitorLock lock(*state_->monitor);
    return error_;
  }

  // The queue's task calls these; finish() under the monitor's lock.
  void run(const ProcessGroup& group, const std::function<void(const Call&)>& execute) {
    const int meeting = is_point_to_point(call_.op) ? 0 : group.size();
    state_->runtime.begin_operation(what_, call_.site, meeting);
    execute(call_);
  }
  void finish(std::exception_ptr error) {
    error_ = std::move(error);
    done_ = true;
    state_->monitor->notify_all();
  }

 private:
  std::shared_ptr<State> state_;
  Call call_;
  std::string what_;
  bool done_ = false;
  std::exception_ptr error_;
};

SerialQueue::SerialQueue(Runtime& runtime, std::string name, const ProcessGroup& group,
                         std::function<void(const Call&)> execute)
    : runtime_(runtime),
      name_(std::move(name)),
      group_(group),
      execute_(std::move(execute)),
      state_(std::make_shared<State>(runtime)) {}

SerialQueue::~SerialQueue() {
  if (!task_) return;
  {
    MonitorLock lock(*state_->monitor);
    state_->closing = true;
    state_->monitor->notify_all();
  }
  task_->join();
  state_->jobs.clear();  // a task that was killed leaves some, and they hold the state
}

WorkPtr SerialQueue::submit(Call&& call) {
  auto job = std::make_shared<Job>(state_, std::move(call));
  MonitorLock lock(*state_->monitor);
  if (state_->who.empty()) state_->who = group_.who();
  // First, so that a job is not left behind when no task can be started.
  if (!task_) task_ = runtime_.spawn(name_, [this] { run(); });
  state_->jobs.push_back(job);
  state_->monitor->notify_all();
  return job;
}

void SerialQueue::fail_all(std::exception_ptr error) {
  MonitorLock lock(*state_->monitor);
  if (!state_->failed) state_->failed = std::move(error);
}

void SerialQueue::run() {
  State& state = *state_;
  MonitorLock lock(*state.monitor);
  while (true) {
    while (state.jobs.empty() && !state.closing) {
      state.monitor->wait(kForever, {.what = "idle", .idle = true, .is_local = true});
    }
    if (state.jobs.empty()) return;
    const std::shared_ptr<Job> job = std::move(state.jobs.front());
    state.jobs.pop_front();
    std::exception_ptr error = state.failed;
    if (!error) {
      state.monitor->unlock();
      try {
        job->run(group_, execute_);
      } catch (...) {
        error = std::current_exception();
      }
      state.monitor->lock();
      if (error && !state.failed) state.failed = error;
    }
    job->finish(std::move(error));
  }
}

}  // namespace ddproof
