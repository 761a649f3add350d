#include "backends/api/serial_queue.h"

#include <list>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {

struct SerialQueue::Job {
  std::function<void()> body;
  JobLabel label;
  bool done = false;
  std::exception_ptr error;
};

// Shared by the queue, its task and all Work handles, so that a handle may outlive the queue.
struct SerialQueue::State {
  explicit State(Runtime& r) : runtime(r), monitor(r.make_monitor()) {}
  Runtime& runtime;
  std::unique_ptr<Monitor> monitor;      // guards all below, and every Job's done and error
  std::list<std::shared_ptr<Job>> jobs;  // an empty deque takes half a kilobyte
  std::exception_ptr failed;
  bool closing = false;
};

class SerialQueue::QueuedWork : public Work {
 public:
  QueuedWork(std::shared_ptr<State> state, std::shared_ptr<Job> job)
      : state_(std::move(state)), job_(std::move(job)) {}

  bool is_completed() override {
    state_->runtime.now();  // programs poll this: the clock, unlike the lock, may end a dead rank
    MonitorLock lock(*state_->monitor);
    return job_->done;
  }

  void wait(Duration timeout) override {
    const TimePoint deadline = deadline_after(state_->runtime.now(), timeout);
    MonitorLock lock(*state_->monitor);
    while (!job_->done) {
      if (!state_->monitor->wait(
              deadline, {.what = job_->label.what, .site = job_->label.site, .is_local = true}) &&
          !job_->done) {
        throw CommError(CommErrorKind::kTimeout,
                        job_->label.who + " " + job_->label.what +
                            ": still running when the caller's wait ended; wait longer or abort");
      }
    }
    if (job_->error) std::rethrow_exception(job_->error);
  }

  std::exception_ptr error() override {
    MonitorLock lock(*state_->monitor);
    return job_->error;
  }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<Job> job_;
};

SerialQueue::SerialQueue(Runtime& runtime, std::string name)
    : runtime_(runtime), name_(std::move(name)), state_(std::make_shared<State>(runtime)) {}

SerialQueue::~SerialQueue() {
  if (!task_) return;
  {
    MonitorLock lock(*state_->monitor);
    state_->closing = true;
    state_->monitor->notify_all();
  }
  task_->join();
}

WorkPtr SerialQueue::submit(std::function<void()> job, JobLabel label) {
  auto entry = std::make_shared<Job>(Job{.body = std::move(job), .label = std::move(label)});
  {
    MonitorLock lock(*state_->monitor);
    // First, so that a job is not left behind when no task can be started.
    if (!task_) task_ = runtime_.spawn(name_, [this] { run(); });
    state_->jobs.push_back(entry);
    state_->monitor->notify_all();
  }
  return std::make_shared<QueuedWork>(state_, std::move(entry));
}

WorkPtr SerialQueue::submit(const ProcessGroup& group, Call&& call,
                            std::function<void(const Call&)> execute) {
  JobLabel label{group.who(), call.describe(), call.site,
                 is_point_to_point(call.op) ? 0 : group.size()};
  // Kept by pointer, so that no copy of the call passes over the rank's stack.
  const auto kept = std::make_shared<const Call>(std::move(call));
  return submit([kept, execute = std::move(execute)] { execute(*kept); }, std::move(label));
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
        state.runtime.begin_operation(job->label.what, job->label.site, job->label.meeting);
        job->body();
      } catch (...) {
        error = std::current_exception();
      }
      job->body = nullptr;  // release what it holds before the waiter goes on
      state.monitor->lock();
      if (error && !state.failed) state.failed = error;
    }
    job->error = error;
    job->done = true;
    state.monitor->notify_all();
  }
}

}  // namespace ddproof
