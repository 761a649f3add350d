#include "reference/launch/launcher.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>

#include "backends/api/check.h"
#include "backends/store/tcp_store_server.h"
#include "reference/launch/environment.h"
#include "reference/launch/line_prefix.h"

namespace ddproof {
namespace {

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

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

// The workers of one node from start to end.
class WorkerGroup {
 public:
  WorkerGroup(const LaunchOptions& options, Runtime& runtime, Processes& processes)
      : options_(options), runtime_(runtime), processes_(processes) {}

  void start(const std::string& run_id);
  // Returns when all have ended; the status to exit with.
  int run();

 private:
  struct Worker {
    LinePrefix output[2];
    bool running = true;
  };

  void handle(const ProcessEvent& event);
  void on_end(const ProcessEvent& event);
  void on_signal(int signal);
  // Whether it is the last one again, too soon to count; remembers it.
  bool repeats(int signal);
  void on_unwritable(const ProcessEvent& event);
  void decide_failure();
  void on_deadline();
  // Asks all to stop, and sets how long they may take.
  void stop(int signal);
  void send(int signal);
  void kill_late(const std::string& reason);
  void flush();

  int running() const {
    return static_cast<int>(std::ranges::count_if(workers_, &Worker::running));
  }
  bool failed() const { return status_ != 0; }
  bool stopping() const { return stop_deadline_ != kForever || killed_; }
  void say(const std::string& text) {
    processes_.write(Stream::kErr, "ddproof run: " + text + "\n");
  }
  std::string name(int worker) const {
    return "rank " + std::to_string(worker) + " (pid " + std::to_string(processes_.pid(worker)) +
           ")";
  }

  const LaunchOptions& options_;
  Runtime& runtime_;
  Processes& processes_;
  std::vector<Worker> workers_;
  std::map<int, ProcessEnd> failures_;    // found together, not decided on yet
  TimePoint report_deadline_ = kForever;  // set between the first failure and SIGTERM
  TimePoint stop_deadline_ = kForever;    // set between SIGTERM and SIGKILL
  bool killed_ = false;
  int last_signal_ = 0;  // 0: none yet
  TimePoint last_signal_at_{0};
  bool output_lost_ = false;
  int status_ = 0;
};

void WorkerGroup::start(const std::string& run_id) {
  const std::vector<std::string> base = runtime_.environment().all();
  for (int rank = 0; rank < options_.local_world_size; ++rank) {
    const int process =
        processes_.start({.command = options_.command,
                          .environment = worker_environment(base, options_, rank, run_id),
                          .inherit_input = rank == 0});
    DDPROOF_CHECK(process == rank);
    const std::string prefix = "[rank " + std::to_string(rank) + "] ";
    workers_.push_back({{LinePrefix(prefix), LinePrefix(prefix)}, true});
  }
}

int WorkerGroup::run() {
  while (running() > 0 || !failures_.empty()) {
    // What is known at once is looked at together, before the first failure is named.
    const ProcessEvent event = processes_.next_event(
        failures_.empty() ? std::min(report_deadline_, stop_deadline_) : runtime_.now());
    if (event.kind == ProcessEvent::Kind::kDeadline) {
      on_deadline();
    } else {
      handle(event);
    }
  }
  flush();
  return status_ == 0 && output_lost_ ? kOutputLostStatus : status_;
}

void WorkerGroup::on_deadline() {
  if (!failures_.empty()) return decide_failure();
  if (stopping()) return kill_late("did not stop within " + seconds(options_.grace));
  stop(SIGTERM);
}

void WorkerGroup::handle(const ProcessEvent& event) {
  switch (event.kind) {
    case ProcessEvent::Kind::kOutput: {
      LinePrefix& prefix = workers_[static_cast<std::size_t>(event.process)]
                               .output[static_cast<std::size_t>(event.stream)];
      processes_.write(event.stream, prefix.take(event.bytes));
      break;
    }
    case ProcessEvent::Kind::kEnd: on_end(event); break;
    case ProcessEvent::Kind::kSignal: on_signal(event.signal); break;
    case ProcessEvent::Kind::kUnwritable: on_unwritable(event); break;
    case ProcessEvent::Kind::kFlushed: break;
    case ProcessEvent::Kind::kDeadline: break;
  }
}

void WorkerGroup::on_end(const ProcessEvent& event) {
  Worker& worker = workers_[static_cast<std::size_t>(event.process)];
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    processes_.write(stream, worker.output[static_cast<std::size_t>(stream)].finish());
  }
  worker.running = false;
  // Once they were asked to stop, how they end says nothing new.
  if (!event.end.succeeded() && !stopping()) failures_[event.process] = event.end;
}

void WorkerGroup::decide_failure() {
  if (!failed()) {
    const auto killed =
        std::ranges::find_if(failures_, [](const auto& entry) { return entry.second.signal != 0; });
    const auto first = killed != failures_.end() ? killed : failures_.begin();
    status_ = first->second.status();
    const int others = running();
    say(name(first->first) + " " + describe(first->second) +
        (others > 0 ? "; stopping the other " + std::to_string(others) : ""));
    report_deadline_ = deadline_after(runtime_.now(), kReportTime);
    failures_.erase(first);
  }
  for (const auto& [worker, end] : failures_) {
    say(name(worker) + " " + describe(end) + " after that");
  }
  failures_.clear();
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
  if (stopping()) return kill_late("is still running at a second " + signal_name(signal));
  say("received " + signal_name(signal) + "; stopping " + std::to_string(running()) +
      (running() == 1 ? " worker" : " workers"));
  if (!failed()) status_ = 128 + signal;
  failures_.clear();
  stop(signal);
}

void WorkerGroup::on_unwritable(const ProcessEvent& event) {
  output_lost_ = true;
  say(std::string(event.stream == Stream::kOut ? "standard output" : "standard error") +
      " cannot be written (" + event.bytes + "); what the workers print there is lost");
}

void WorkerGroup::stop(int signal) {
  report_deadline_ = kForever;
  stop_deadline_ = deadline_after(runtime_.now(), options_.grace);
  send(signal);
}

void WorkerGroup::send(int signal) {
  for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker) {
    processes_.signal(worker, signal);
  }
}

void WorkerGroup::kill_late(const std::string& reason) {
  stop_deadline_ = kForever;
  killed_ = true;
  for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker) {
    if (!workers_[static_cast<std::size_t>(worker)].running) continue;
    say(name(worker) + " " + reason + "; killing it");
    processes_.signal(worker, SIGKILL);
  }
}

// Until our reader has all; who was told to end does not wait long for a reader that stands still.
void WorkerGroup::flush() {
  const TimePoint deadline =
      last_signal_ != 0 ? deadline_after(runtime_.now(), std::chrono::seconds(1)) : kForever;
  while (processes_.output_pending()) {
    const ProcessEvent event = processes_.next_event(deadline);
    if (event.kind == ProcessEvent::Kind::kDeadline) return;
    if (event.kind == ProcessEvent::Kind::kUnwritable) on_unwritable(event);
    if (event.kind != ProcessEvent::Kind::kSignal || repeats(event.signal)) continue;
    status_ = 128 + event.signal;
    return;
  }
}

}  // namespace

std::vector<std::string> worker_environment(const std::vector<std::string>& base,
                                            const LaunchOptions& options, int local_rank,
                                            const std::string& run_id) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : base) {
    const auto equals = entry.find('=');
    if (equals != std::string::npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  const std::string rank = std::to_string(local_rank);
  const std::string size = std::to_string(options.local_world_size);
  for (const char* name : {"RANK", "LOCAL_RANK", "ROLE_RANK"}) variables[name] = rank;
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"}) {
    variables[name] = size;
  }
  variables["GROUP_RANK"] = "0";
  variables["GROUP_WORLD_SIZE"] = "1";
  variables["ROLE_NAME"] = "default";
  variables["MASTER_ADDR"] = options.master_addr;
  variables["MASTER_PORT"] = std::to_string(options.master_port);
  variables["TORCHELASTIC_RESTART_COUNT"] = "0";
  variables["TORCHELASTIC_MAX_RESTARTS"] = "0";
  variables["TORCHELASTIC_RUN_ID"] = run_id;
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["DDPROOF_RUN_ID"] = run_id;
  if (options.on_terminal) variables.try_emplace(kProgressVariable, "lines");
  variables.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (options.local_world_size > 1) variables.try_emplace("OMP_NUM_THREADS", "1");
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

int launch(const LaunchOptions& options, Runtime& runtime, Processes& processes) {
  LaunchOptions actual = options;
  actual.master_addr = require_host("--master-addr", options.master_addr);
  const TcpStoreServer store(
      runtime, {.host = actual.master_addr,
                .port = static_cast<std::uint16_t>(options.master_port),
                .port_holder = [&](std::uint16_t port) { return processes.listener_of(port); }});
  actual.master_port = store.port();
  WorkerGroup workers(actual, runtime, processes);
  workers.start(std::to_string(runtime.wall_clock().count()) + "-" + std::to_string(store.port()));
  return workers.run();
}

}  // namespace ddproof
