#include "reference/launch/worker_group.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "backends/api/check.h"
#include "reference/launch/launcher.h"

namespace ddproof {
namespace {

std::string describe(const ProcessEnd& end) {
  if (end.signal != 0) return "was killed by " + signal_name(end.signal);
  return "exited with status " + std::to_string(end.exit_code);
}

std::string seconds(Duration duration) {
  const auto milliseconds = std::chrono::round<std::chrono::milliseconds>(duration).count();
  std::string text = std::to_string(milliseconds / 1000);
  if (milliseconds % 1000 != 0) text += "." + std::to_string(1000 + milliseconds % 1000).substr(1);
  return text + " s";
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

void WorkerGroup::start(std::vector<WorkerSpec> workers) {
  for (WorkerSpec& worker : workers) {
    const int process = processes_.start(worker.process);
    if (workers_.empty()) first_process_ = process;
    DDPROOF_CHECK(process == first_process_ + size());
    workers_.push_back({std::move(worker.output)});
  }
}

int WorkerGroup::running() const {
  return static_cast<int>(std::ranges::count_if(workers_, &Worker::running));
}

void WorkerGroup::say(const std::string& text) {
  processes_.write(Stream::kErr, "ddproof run: " + text + "\n");
}

std::string WorkerGroup::name(int worker) const {
  return "rank " + std::to_string(first_rank_ + worker) + " (pid " +
         std::to_string(processes_.pid(first_process_ + worker)) + ")";
}

GroupEnd WorkerGroup::run(const std::function<bool()>& must_stop,
                          const std::function<void(const GroupEnd&)>& on_failure) {
  while (running() > 0 || !failures_.empty()) {
    // What is known at once is looked at together, before the first failure is named.
    const ProcessEvent event = processes_.next_event(
        failures_.empty() ? std::min(report_deadline_, stop_deadline_) : runtime_.now());
    if (must_stop()) on_must_stop();
    if (event.kind != ProcessEvent::Kind::kDeadline) {
      handle(event);
    } else if (failures_.empty()) {
      on_deadline();
    } else if (decide_failure() && !end_.was_stopped) {
      on_failure(end_);
    }
  }
  return end_;
}

void WorkerGroup::on_deadline() {
  if (stopping()) return kill_late("did not stop within " + seconds(grace_));
  stop(SIGTERM);
}

// Others may say whom they lost here, too.
void WorkerGroup::on_must_stop() {
  if (end_.was_stopped || failed() || stopping()) return;
  end_.was_stopped = true;
  report_deadline_ = deadline_after(runtime_.now(), kReportTime);
}

void WorkerGroup::handle(const ProcessEvent& event) {
  switch (event.kind) {
    case ProcessEvent::Kind::kOutput: on_output(event); break;
    case ProcessEvent::Kind::kEnd: on_end(event); break;
    case ProcessEvent::Kind::kSignal: on_signal(event.signal); break;
    case ProcessEvent::Kind::kUnwritable: on_unwritable(event); break;
    case ProcessEvent::Kind::kFlushed: break;
    case ProcessEvent::Kind::kWoken: break;
    case ProcessEvent::Kind::kDeadline: break;
  }
}

void WorkerGroup::on_output(const ProcessEvent& event) {
  const auto on_full = [this](const std::string& reason) {
    end_.output_lost = true;
    say("a log file cannot be written (" + reason + "); what follows is not in it");
  };
  processes_.write(event.stream, worker_of(event).output.take(event.stream, event.bytes, on_full));
}

void WorkerGroup::on_end(const ProcessEvent& event) {
  Worker& worker = worker_of(event);
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    processes_.write(stream, worker.output.finish(stream));
  }
  worker.running = false;
  // Once they were asked to stop, how they end says nothing new.
  if (event.end.succeeded() || stopping()) return;
  failures_[event.process - first_process_] = event.end;
}

bool WorkerGroup::decide_failure() {
  const bool is_first = !failed();
  if (is_first) {
    const auto killed =
        std::ranges::find_if(failures_, [](const auto& entry) { return entry.second.signal != 0; });
    const auto first = killed != failures_.end() ? killed : failures_.begin();
    end_.status = first->second.status();
    end_.first_failed = first->first;
    end_.failure = name(first->first) + " " + describe(first->second);
    end_.failed_at = runtime_.wall_clock();
    const int others = running();
    say(end_.failure + (others > 0 ? "; stopping the other " + std::to_string(others) : ""));
    report_deadline_ = deadline_after(runtime_.now(), kReportTime);
    failures_.erase(first);
  }
  for (const auto& [worker, end] : failures_) {
    say(name(worker) + " " + describe(end) + " after that");
  }
  failures_.clear();
  return is_first;
}

bool WorkerGroup::repeats(int signal) {
  const TimePoint now = runtime_.now();
  if (signal == last_signal_ && now - last_signal_at_ < kSameSignal) return true;
  last_signal_ = signal;
  last_signal_at_ = now;
  return false;
}

void WorkerGroup::on_signal(int signal) {
  if (signal == SIGUSR1 || signal == SIGUSR2) return send(signal);
  if (repeats(signal)) return;
  end_.was_signalled = true;
  if (stopping()) return kill_late("is still running at a second " + signal_name(signal));
  say("received " + signal_name(signal) + "; stopping " + std::to_string(running()) +
      (running() == 1 ? " worker" : " workers"));
  if (!failed()) end_.status = 128 + signal;
  failures_.clear();
  stop(signal);
}

void WorkerGroup::on_unwritable(const ProcessEvent& event) {
  end_.output_lost = true;
  say(std::string(event.stream == Stream::kOut ? "standard output" : "standard error") +
      " cannot be written (" + event.bytes + "); what the workers print there is lost");
}

void WorkerGroup::stop(int signal) {
  report_deadline_ = kForever;
  stop_deadline_ = deadline_after(runtime_.now(), grace_);
  send(signal);
}

void WorkerGroup::send(int signal) {
  for (int worker = 0; worker < size(); ++worker) {
    processes_.signal(first_process_ + worker, signal);
  }
}

void WorkerGroup::kill_late(const std::string& reason) {
  stop_deadline_ = kForever;
  killed_ = true;
  for (int worker = 0; worker < size(); ++worker) {
    if (!workers_[static_cast<std::size_t>(worker)].running) continue;
    say(name(worker) + " " + reason + "; killing it");
    processes_.signal(first_process_ + worker, SIGKILL);
  }
}

GroupEnd WorkerGroup::flush() {
  const TimePoint deadline =
      last_signal_ != 0 ? deadline_after(runtime_.now(), std::chrono::seconds(1)) : kForever;
  while (processes_.output_pending()) {
    const ProcessEvent event = processes_.next_event(deadline);
    if (event.kind == ProcessEvent::Kind::kDeadline) break;
    if (event.kind == ProcessEvent::Kind::kUnwritable) on_unwritable(event);
    if (event.kind != ProcessEvent::Kind::kSignal || repeats(event.signal)) continue;
    end_.was_told_late = true;
    end_.status = 128 + event.signal;
    break;
  }
  return end_;
}

}  // namespace ddproof
