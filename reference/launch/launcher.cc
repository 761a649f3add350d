#include "reference/launch/launcher.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "backends/api/error.h"
#include "backends/store/host_and_port.h"
#include "backends/store/memory_store.h"
#include "backends/store/tcp_store_server.h"
#include "reference/launch/agent.h"
#include "reference/launch/environment.h"
#include "reference/launch/error_file.h"
#include "reference/launch/node_store.h"
#include "reference/launch/worker_group.h"

namespace ddproof {
namespace {

const char* file_name(Stream stream) {
  return stream == Stream::kOut ? "stdout.log" : "stderr.log";
}

// The workers of this node as the agent knows them: real processes.
class Launch final : public Workers {
 public:
  // `own_address` is where other nodes reach this one.
  Launch(const LaunchOptions& options, std::string own_address, Runtime& runtime,
         Processes& processes)
      : options_(options),
        own_address_(std::move(own_address)),
        runtime_(runtime),
        processes_(processes) {}

  Meeting open_meeting() override;
  void start(const Round& round) override;
  WorkersEnd run(const std::function<bool()>& must_stop,
                 const std::function<void(const JobEnd&)>& on_failure) override;
  WorkersEnd attend(const std::function<bool()>& until) override;
  void wake() override { processes_.wake(); }
  // The status to exit with.
  int finish(const JobEnd& end);

  void say(const std::string& text) {
    processes_.write(Stream::kErr, "ddproof run: " + text + "\n");
  }

 private:
  bool has_other_nodes() const { return options_.nodes.nodes_max > 1; }
  void announce(const Round& round);
  void choose_names(std::uint16_t port);
  std::vector<WorkerSpec> workers(const Attempt& attempt);
  WorkerOutput output_of(const Attempt& attempt, int local_rank, const std::string& folder);
  bool has_log(int local_rank, Stream stream) const {
    return options_.redirects.has(local_rank, stream) || options_.tee.has(local_rank, stream);
  }
  bool is_shown(int local_rank, Stream stream) const {
    return !options_.redirects.has(local_rank, stream) &&
           (options_.local_ranks.empty() ||
            std::ranges::count(options_.local_ranks, local_rank) > 0);
  }
  bool keeps_logs() const { return !folder_.empty(); }
  std::string worker_folder(int attempt, int local_rank) const;
  std::string error_file(int attempt, int local_rank) const;
  void remove_error_files();
  std::string report_of(const GroupEnd& end) const;

  const LaunchOptions& options_;
  std::string own_address_;
  Runtime& runtime_;
  Processes& processes_;
  std::string run_id_;
  std::string folder_;      // of all files; empty: error files only
  std::string error_stem_;  // of error files outside of a folder
  std::unique_ptr<TcpStoreServer> store_;
  std::optional<WorkerGroup> group_;  // the latest workers
  Round round_;                       // in which they are
  int attempts_ = 0;                  // how often workers were started
  bool output_lost_ = false;
};

Meeting Launch::open_meeting() {
  store_.reset();
  TcpStoreServerOptions where{
      .token = read_store_token(runtime_.environment()),
      .port_holder = [this](std::uint16_t port) { return processes_.listener_of(port); }};
  if (!has_other_nodes()) {
    where.host = options_.master_addr;
    where.port = static_cast<std::uint16_t>(options_.master_port);
  } else if (is_loopback(own_address_)) {
    where.host = own_address_;
  }
  store_ = std::make_unique<TcpStoreServer>(runtime_, where);
  return {own_address_, store_->port()};
}

void Launch::start(const Round& round) {
  if (attempts_ == 0) choose_names(round.master().port);
  remove_error_files();
  announce(round);
  ++attempts_;
  round_ = round;
  if (round.group_rank != 0) store_.reset();
  group_.emplace(runtime_, processes_, options_.grace, round.first_rank());
  group_->start(workers({run_id_, round}));
}

void Launch::announce(const Round& round) {
  if (attempts_ > 0 && round.restarts > round_.restarts) {
    say(fmt::format("starting all {} workers again: restart {} of {}", round.world_size(),
                    round.restarts, options_.max_restarts));
  } else if (attempts_ > 0) {
    say("starting all workers again: " + round.reason);
  }
  if (!has_other_nodes()) return;
  say(fmt::format("round {}: this is node {} of {} ({}), with ranks {} to {} of {}", round.number,
                  round.group_rank, round.group_size(), hosts_of(round.members), round.first_rank(),
                  round.first_rank() + options_.local_world_size - 1, round.world_size()));
}

WorkersEnd Launch::run(const std::function<bool()>& must_stop,
                       const std::function<void(const JobEnd&)>& on_failure) {
  const GroupEnd end = group_->run(must_stop, [&](const GroupEnd& first) {
    on_failure({first.status, report_of(first)});
  });
  output_lost_ = output_lost_ || end.output_lost;
  if (end.was_signalled) {
    return {WorkersEnd::Kind::kTold, {end.status, end.first_failed ? report_of(end) : ""}};
  }
  if (end.was_stopped) return {WorkersEnd::Kind::kStopped, {}};
  return {end.status == 0 ? WorkersEnd::Kind::kSucceeded : WorkersEnd::Kind::kFailed, {}};
}

WorkersEnd Launch::attend(const std::function<bool()>& until) {
  while (!until()) {
    const ProcessEvent event = processes_.next_event(kForever);
    if (event.kind == ProcessEvent::Kind::kUnwritable) output_lost_ = true;
    if (event.kind != ProcessEvent::Kind::kSignal) continue;
    if (event.signal == SIGUSR1 || event.signal == SIGUSR2) continue;
    say("received " + signal_name(event.signal) + "; leaving the job");
    return {WorkersEnd::Kind::kTold, {128 + event.signal, ""}};
  }
  return {};
}

int Launch::finish(const JobEnd& end) {
  if (!end.text.empty()) say(end.text);
  int status = end.status;
  if (!group_) group_.emplace(runtime_, processes_, options_.grace, 0);
  const GroupEnd last = group_->flush();
  output_lost_ = output_lost_ || last.output_lost;
  if (last.was_told_late) status = last.status;
  remove_error_files();
  return status == 0 && output_lost_ ? kOutputLostStatus : status;
}

// Unique ones, but for the id that the user gave.
void Launch::choose_names(std::uint16_t port) {
  const std::string own = fmt::format("{}-{}", runtime_.wall_clock().count(), port);
  run_id_ = options_.run_id.empty() ? own : options_.run_id;
  const std::string temporary = runtime_.environment().get("TMPDIR").value_or("");
  error_stem_ = (temporary.empty() ? "/tmp" : temporary) + "/ddproof-" + own;
  if (!options_.log_directory.empty()) {
    folder_ = options_.log_directory + "/" + (run_id_ == own ? own : run_id_ + "_" + own);
  } else if (!options_.redirects.is_empty() || !options_.tee.is_empty()) {
    folder_ = error_stem_;
  }
  if (keeps_logs()) say("the workers' files are in " + folder_);
}

std::string Launch::worker_folder(int attempt, int local_rank) const {
  return fmt::format("{}/attempt_{}/{}", folder_, attempt, local_rank);
}

std::string Launch::error_file(int attempt, int local_rank) const {
  if (keeps_logs()) return worker_folder(attempt, local_rank) + "/error.json";
  return fmt::format("{}-{}-{}-error.json", error_stem_, attempt, local_rank);
}

// Of the latest attempt.
void Launch::remove_error_files() {
  if (keeps_logs() || attempts_ == 0) return;
  for (int rank = 0; rank < options_.local_world_size; ++rank) {
    try {
      runtime_.files().remove(error_file(attempts_ - 1, rank));
    } catch (const DataError& error) {  // a worker made something else of it
      say(std::string("an error file cannot be removed (") + error.what() + ")");
    }
  }
}

std::vector<WorkerSpec> Launch::workers(const Attempt& attempt) {
  const std::vector<std::string> base = runtime_.environment().all();
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < options_.local_world_size; ++rank) {
    const std::string folder = worker_folder(attempts_ - 1, rank);
    if (keeps_logs()) runtime_.files().make_directory(folder);
    workers.push_back({{.command = options_.command,
                        .environment = worker_environment(base, options_, attempt, rank,
                                                          error_file(attempts_ - 1, rank)),
                        .inherit_input = attempt.round.first_rank() + rank == 0},
                       output_of(attempt, rank, folder)});
  }
  return workers;
}

WorkerOutput Launch::output_of(const Attempt& attempt, int local_rank, const std::string& folder) {
  WorkerOutput output(fmt::format("[rank {}] ", attempt.round.first_rank() + local_rank));
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    if (has_log(local_rank, stream)) {
      output.add_file(stream, runtime_.files().create(folder + "/" + file_name(stream)));
    }
    if (!is_shown(local_rank, stream)) output.hide(stream);
  }
  return output;
}

std::string Launch::report_of(const GroupEnd& end) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(end.failed_at).count();
  std::string text = fmt::format("first failure, {:%Y-%m-%d %H:%M:%S} UTC{}: {}",
                                 fmt::gmtime(static_cast<std::time_t>(seconds)),
                                 options_.host.empty() ? "" : " on " + options_.host, end.failure);
  const std::string path = error_file(attempts_ - 1, *end.first_failed);
  if (const auto message = read_error_file(runtime_.files(), path)) text += ": " + *message;
  if (round_.restarts > 0)
    text += fmt::format(" (after {} of {} restarts)", round_.restarts, options_.max_restarts);
  return text;
}

RoundsOptions rounds_options(const LaunchOptions& options) {
  RoundsOptions rounds = options.nodes;
  if (!options.run_id.empty()) rounds.run_id = options.run_id;
  rounds.max_restarts = options.max_restarts;
  rounds.local_world_size = options.local_world_size;
  if (!options.host.empty()) rounds.host = options.host;
  rounds.pid = ::getpid();
  return rounds;
}

// A world of one node: it agrees with itself.
int launch_alone(const LaunchOptions& options, Runtime& runtime, Processes& processes) {
  MemoryStore store(std::make_shared<MemoryStoreServer>(runtime), runtime);
  Rounds rounds(store, runtime, rounds_options(options));
  Launch workers(options, options.master_addr, runtime, processes);
  return workers.finish(run_agent(rounds, workers, runtime));
}

// Connects beside, so that a node can be told to end meanwhile.
WorkersEnd connect(NodeStore& meeting, Duration timeout, Launch& workers, Runtime& runtime) {
  std::atomic<bool> is_over = false;
  std::atomic<bool> must_end = false;
  const auto task = runtime.spawn("connect", [&] {
    struct Notice {
      std::atomic<bool>& is_over;
      Launch& workers;
      ~Notice() {
        is_over = true;
        workers.wake();
      }
    } const notice{is_over, workers};
    meeting.connect(timeout, [&] { return must_end.load(); });
  });
  const WorkersEnd end = workers.attend([&] { return is_over.load(); });
  must_end = true;
  task->join();
  return end;
}

int launch_node(const LaunchOptions& options, Runtime& runtime, Processes& processes) {
  const RoundsOptions nodes = rounds_options(options);
  NodeStore meeting(
      runtime, {.host = options.master_addr,
                .port = static_cast<std::uint16_t>(options.master_port),
                .is_host = options.hosts_rendezvous,
                .token = read_store_token(runtime.environment()),
                .port_holder = [&](std::uint16_t port) { return processes.listener_of(port); }});
  Launch workers(options, options.local_addr.empty() ? meeting.own_address() : options.local_addr,
                 runtime, processes);
  workers.say(fmt::format(
      "{} the rendezvous at {}", meeting.is_host() ? "hosting" : "joining",
      host_and_port(options.master_addr, static_cast<std::uint16_t>(options.master_port))));
  if (options.ignores_node_rank) {
    workers.say("--node-rank is for --rdzv-backend static; ranks follow the nodes' host names");
  }
  const WorkersEnd end = connect(meeting, nodes.join_timeout, workers, runtime);
  if (end.kind == WorkersEnd::Kind::kTold) return workers.finish(end.end);
  Rounds rounds(meeting.store(), runtime, nodes);
  return workers.finish(run_agent(rounds, workers, runtime));
}

}  // namespace

std::vector<std::string> worker_environment(const std::vector<std::string>& base,
                                            const LaunchOptions& options, const Attempt& attempt,
                                            int local_rank, const std::string& error_file) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : base) {
    const auto equals = entry.find('=');
    if (equals != std::string::npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  const Round& round = attempt.round;
  const std::string rank = std::to_string(round.first_rank() + local_rank);
  const std::string size = std::to_string(round.world_size());
  for (const char* name : {"RANK", "ROLE_RANK"}) variables[name] = rank;
  for (const char* name : {"WORLD_SIZE", "ROLE_WORLD_SIZE"}) variables[name] = size;
  variables["LOCAL_RANK"] = std::to_string(local_rank);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(options.local_world_size);
  variables["GROUP_RANK"] = std::to_string(round.group_rank);
  variables["GROUP_WORLD_SIZE"] = std::to_string(round.group_size());
  variables["ROLE_NAME"] = options.role;
  variables["MASTER_ADDR"] = round.master().address;
  variables["MASTER_PORT"] = std::to_string(round.master().port);
  variables["TORCHELASTIC_RESTART_COUNT"] = std::to_string(round.restarts);
  variables["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(options.max_restarts);
  variables[kErrorFileVariable] = error_file;
  variables["TORCHELASTIC_RUN_ID"] = attempt.run_id;
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["DDPROOF_RUN_ID"] = attempt.run_id;
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
  return actual.nodes.nodes_max > 1 ? launch_node(actual, runtime, processes)
                                    : launch_alone(actual, runtime, processes);
}

}  // namespace ddproof
