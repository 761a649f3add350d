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
    return is_done() && (!rest_ || rest_->is_completed());
  }

  void wait(Duration timeout) override {
    const TimePoint deadline = deadline_after(state_->runtime.now(), timeout);
    await(deadline);
    if (error_) std::rethrow_exception(error_);
    if (rest_) rest_->wait(time_left(state_->runtime.now(), deadline));
  }

  std::exception_ptr error() override {
    if (!is_done()) return nullptr;
    return rest_ ? rest_->error() : error_;
  }

  // The queue's task calls these; finish() under the monitor's lock.
  const Call& call() const { return call_; }
  void begin(const ProcessGroup& group) const {
    MeetingCall meeting;
    if (!is_point_to_point(call_.op)) meeting = {group.size(), call_.fingerprint_in(what_)};
    state_->runtime.begin_operation(what_, call_.site, meeting);
  }
  void finish(WorkPtr rest, std::exception_ptr error) {
    rest_ = std::move(rest);
    error_ = std::move(error);
    done_ = true;
    state_->monitor->notify_all();
  }

 private:
  // Once it is, nothing here changes any more.
  bool is_done() {
    MonitorLock lock(*state_->monitor);
    return done_;
  }

  void await(TimePoint deadline) {
    MonitorLock lock(*state_->monitor);
    while (!done_) {
      if (!state_->monitor->wait(deadline, {.what = what_, .site = call_.site, .is_local = true}) &&
          !done_) {
        throw CommError(CommErrorKind::kTimeout,
                        state_->who + " " + what_ +
                            ": still running when the caller's wait ended; wait longer or abort");
      }
    }
  }

  std::shared_ptr<State> state_;
  Call call_;
  std::string what_;
  bool done_ = false;
  WorkPtr rest_;
  std::exception_ptr error_;
};

SerialQueue::SerialQueue(Runtime& runtime, std::string name, const ProcessGroup& group,
                         Execute execute)
    : SerialQueue(runtime, std::move(name), group, std::move(execute), nullptr) {}

SerialQueue::SerialQueue(Runtime& runtime, std::string name, const ProcessGroup& group,
                         ExecuteTogether execute)
    : SerialQueue(runtime, std::move(name), group, nullptr, std::move(execute)) {}

SerialQueue::SerialQueue(Runtime& runtime, std::string name, const ProcessGroup& group,
                         Execute one_by_one, ExecuteTogether together)
    : runtime_(runtime),
      name_(std::move(name)),
      group_(group),
      one_by_one_(std::move(one_by_one)),
      together_(std::move(together)),
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
  Jobs jobs;
  MonitorLock lock(*state.monitor);
  while (true) {
    while (state.jobs.empty() && !state.closing) {
      state.monitor->wait(kForever, {.what = "idle", .idle = true, .is_local = true});
    }
    if (state.jobs.empty()) return;
    jobs.push_back(std::move(state.jobs.front()));
    state.jobs.pop_front();
    if (together_ && jobs.back()->call().more_follow) continue;
    run(jobs);
    jobs.clear();
  }
}

void SerialQueue::run(const Jobs& jobs) {
  State& state = *state_;
  WorkPtr rest;
  std::exception_ptr error = state.failed;
  if (!error) {
    state.monitor->unlock();
    try {
      rest = execute(jobs);
    } catch (...) {
      error = std::current_exception();
    }
    state.monitor->lock();
    if (error && !state.failed) state.failed = error;
  }
  for (const auto& job : jobs) job->finish(rest, error);
}

WorkPtr SerialQueue::execute(const Jobs& jobs) {
  jobs.front()->begin(group_);
  if (one_by_one_) {
    one_by_one_(jobs.front()->call());
    return nullptr;
  }
  std::vector<const Call*> calls;
  for (const auto& job : jobs) calls.push_back(&job->call());
  return together_(calls);
}

}  // namespace ddproof
