#include "backends/nccl/in_flight.h"

#include <list>
#include <utility>
#include <vector>

namespace ddproof::nccl {

// Shared with the Work.
struct InFlight::State {
  explicit State(Runtime& r) : runtime(r), monitor(r.make_monitor()) {}
  Runtime& runtime;
  std::unique_ptr<Monitor> monitor;  // guards all below, and every Flight's done and error
  std::list<std::shared_ptr<Flight>> flights;
  bool failed = false;   // no call will be done any more
  bool failing = false;  // a task finds out why
  bool closing = false;
};

class InFlight::Flight final : public Work {
 public:
  Flight(std::shared_ptr<State> state, const Call& call, std::unique_ptr<Launch> launch)
      : state_(std::move(state)), call_(call), launch_(std::move(launch)) {}

  bool is_completed() override {
    state_->runtime.now();  // as SerialQueue's
    MonitorLock lock(*state_->monitor);
    if (done_ || state_->failed) return done_;
    try {
      return launch_->is_done();
    } catch (const LibraryError&) {
      return false;  // the one who watches finds it too
    }
  }

  void wait(Duration timeout) override {
    const TimePoint deadline = deadline_after(state_->runtime.now(), timeout);
    await([this] { return done_ || !state_->failed; }, deadline);
    try {
      // Also for a call that has failed: what is left of it in the queues may use the buffers.
      launch_->make_streams_wait();
    } catch (const LibraryError&) {
      await([this] { return done_; }, deadline);  // the one who watches finds it too
      if (!error()) throw;
    }
    if (const std::exception_ptr failed = error()) std::rethrow_exception(failed);
  }

  std::exception_ptr error() override {
    MonitorLock lock(*state_->monitor);
    return error_;
  }

  const Call& call() const { return call_; }
  const Launch& launch() const { return *launch_; }

  // Under the lock.
  void fail(std::exception_ptr error) { error_ = std::move(error); }
  void finish() { done_ = true; }

 private:
  template <class IsThere>
  void await(IsThere&& is_there, TimePoint deadline) {
    MonitorLock lock(*state_->monitor);
    while (!is_there() && state_->monitor->wait(
                              deadline, {.what = "the end of a failed call", .is_local = true})) {
    }
  }

  std::shared_ptr<State> state_;
  Call call_;
  std::unique_ptr<Launch> launch_;
  bool done_ = false;
  std::exception_ptr error_;
};

InFlight::InFlight(Runtime& runtime, Failure failure)
    : runtime_(runtime), failure_(std::move(failure)), state_(std::make_shared<State>(runtime)) {}

InFlight::~InFlight() {
  if (!task_) return;
  {
    MonitorLock lock(*state_->monitor);
    state_->closing = true;
    state_->monitor->notify_all();
  }
  task_->join();
  state_->flights.clear();  // a task that was killed leaves some, and they hold the state
}

WorkPtr InFlight::add(const Call& call, std::unique_ptr<Launch> launch, int device) {
  const auto flight = std::make_shared<Flight>(state_, call, std::move(launch));
  MonitorLock lock(*state_->monitor);
  if (!task_) task_ = runtime_.spawn("nccl watchdog", [this, device] { watch(device); });
  state_->flights.push_back(flight);
  state_->monitor->notify_all();
  return flight;
}

bool InFlight::finish_done() {
  auto& flights = state_->flights;
  const std::size_t before = flights.size();
  while (!flights.empty() && flights.front()->launch().is_done()) {
    flights.front()->launch().deliver();
    flights.front()->finish();
    flights.pop_front();
  }
  if (flights.size() == before) return false;
  state_->monitor->notify_all();
  return true;
}

void InFlight::watch(int device) {
  State& state = *state_;
  Pauses pauses;
  MonitorLock lock(*state.monitor);
  while (true) {
    if (state.flights.empty()) {
      if (state.closing) return;
      pauses = Pauses();
      state.monitor->wait(kForever, {.what = "idle", .idle = true, .is_local = true});
      continue;
    }
    try {
      use_device(device);
      if (finish_done()) pauses = Pauses();
      for (const auto& flight : state.flights) flight->launch().check();
      state.monitor->wait(deadline_after(runtime_.now(), pauses.next()), {.what = "the device"});
    } catch (...) {
      fail_under_lock(std::current_exception());
    }
  }
}

void InFlight::fail_all(const std::exception_ptr& cause) {
  MonitorLock lock(*state_->monitor);
  fail_under_lock(cause);
}

void InFlight::fail_under_lock(const std::exception_ptr& cause) {
  State& state = *state_;
  state.failed = true;
  while (state.failing) {
    state.monitor->wait(kForever, {.what = "the reason of a failure", .is_local = true});
  }
  state.failing = true;
  const auto failed = std::exchange(state.flights, {});
  state.monitor->unlock();  // to find out may take long
  std::vector<std::exception_ptr> errors;
  for (const auto& flight : failed) {
    try {
      std::rethrow_exception(cause);
    } catch (...) {
      errors.push_back(failure_.error_of(flight->call()));
    }
  }
  state.monitor->lock();
  for (std::size_t i = 0; const auto& flight : failed) flight->fail(errors[i++]);
  state.monitor->unlock();
  failure_.end();
  state.monitor->lock();
  for (const auto& flight : failed) flight->finish();
  state.failing = false;
  state.monitor->notify_all();
}

}  // namespace ddproof::nccl
