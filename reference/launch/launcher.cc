#include "reference/launch/launcher.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "backends/api/error.h"
#include "backends/store/tcp_store_server.h"
#include "reference/launch/environment.h"
#include "reference/launch/error_file.h"
#include "reference/launch/worker_group.h"

namespace ddproof {
namespace {

const char* file_name(Stream stream) {
  return stream == Stream::kOut ? "stdout.log" : "stderr.log";
}

// What `ddproof run` does from its first worker to its status.
class Launch {
 public:
  Launch(const LaunchOptions& options, Runtime& runtime, Processes& processes)
      : options_(options), runtime_(runtime), processes_(processes) {}

  int run();

 private:
  // The status to exit with; nothing when all workers are to start again.
  std::optional<int> run_attempt(int restarts);
  void choose_names(std::uint16_t port);
  std::vector<WorkerSpec> workers(const Attempt& attempt);
  WorkerOutput output_of(int local_rank, const std::string& folder);
  bool has_log(int local_rank, Stream stream) const {
    return options_.redirects.has(local_rank, stream) || options_.tee.has(local_rank, stream);
  }
  bool is_shown(int local_rank, Stream stream) const {
    return !options_.redirects.has(local_rank, stream) &&
           (options_.local_ranks.empty() ||
            std::ranges::count(options_.local_ranks, local_rank) > 0);
  }
  bool keeps_logs() const { return !folder_.empty(); }
  std::string worker_folder(int restarts, int local_rank) const;
  std::string error_file(int restarts, int local_rank) const;
  void remove_error_files(int restarts);
  void report(const GroupEnd& end, int restarts);
  void say(const std::string& text) {
    processes_.write(Stream::kErr, "ddproof run: " + text + "\n");
  }

  const LaunchOptions& options_;
  Runtime& runtime_;
  Processes& processes_;
  std::string run_id_;
  std::string folder_;      // of all files; empty: error files only
  std::string error_stem_;  // of error files outside of a folder
  bool output_lost_ = false;
};

int Launch::run() {
  for (int restarts = 0;; ++restarts) {
    if (const std::optional<int> status = run_attempt(restarts)) return *status;
    say(fmt::format("starting all {} workers again: restart {} of {}", options_.local_world_size,
                    restarts + 1, options_.max_restarts));
  }
}

std::optional<int> Launch::run_attempt(int restarts) {
  const TcpStoreServer store(
      runtime_, {.host = options_.master_addr,
                 .port = static_cast<std::uint16_t>(options_.master_port),
                 .token = read_store_token(runtime_.environment()),
                 .port_holder = [&](std::uint16_t port) { return processes_.listener_of(port); }});
  if (restarts == 0) choose_names(store.port());
  WorkerGroup group(runtime_, processes_, options_.grace);
  group.start(workers({run_id_, restarts, store.port()}));
  GroupEnd end = group.run();
  const bool goes_on = end.first_failed && !end.was_signalled && restarts < options_.max_restarts;
  if (!goes_on) {
    if (end.first_failed) report(end, restarts);
    end = group.flush();
  }
  remove_error_files(restarts);
  output_lost_ = output_lost_ || end.output_lost;
  if (goes_on) return std::nullopt;
  return end.status == 0 && output_lost_ ? kOutputLostStatus : end.status;
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

std::string Launch::worker_folder(int restarts, int local_rank) const {
  return fmt::format("{}/attempt_{}/{}", folder_, restarts, local_rank);
}

std::string Launch::error_file(int restarts, int local_rank) const {
  if (keeps_logs()) return worker_folder(restarts, local_rank) + "/error.json";
  return fmt::format("{}-{}-{}-error.json", error_stem_, restarts, local_rank);
}

void Launch::remove_error_files(int restarts) {
  if (keeps_logs()) return;
  for (int rank = 0; rank < options_.local_world_size; ++rank) {
    try {
      runtime_.files().remove(error_file(restarts, rank));
    } catch (const DataError& error) {  // a worker made something else of it
      say(std::string("an error file cannot be removed (") + error.what() + ")");
    }
  }
}

std::vector<WorkerSpec> Launch::workers(const Attempt& attempt) {
  const std::vector<std::string> base = runtime_.environment().all();
  std::vector<WorkerSpec> workers;
  for (int rank = 0; rank < options_.local_world_size; ++rank) {
    const std::string folder = worker_folder(attempt.restarts, rank);
    if (keeps_logs()) runtime_.files().make_directory(folder);
    workers.push_back({{.command = options_.command,
                        .environment = worker_environment(base, options_, attempt, rank,
                                                          error_file(attempt.restarts, rank)),
                        .inherit_input = rank == 0},
                       output_of(rank, folder)});
  }
  return workers;
}

WorkerOutput Launch::output_of(int local_rank, const std::string& folder) {
  WorkerOutput output(fmt::format("[rank {}] ", local_rank));
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    if (has_log(local_rank, stream)) {
      output.add_file(stream, runtime_.files().create(folder + "/" + file_name(stream)));
    }
    if (!is_shown(local_rank, stream)) output.hide(stream);
  }
  return output;
}

void Launch::report(const GroupEnd& end, int restarts) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(end.failed_at).count();
  std::string text = fmt::format("first failure, {:%Y-%m-%d %H:%M:%S} UTC{}: {}",
                                 fmt::gmtime(static_cast<std::time_t>(seconds)),
                                 options_.host.empty() ? "" : " on " + options_.host, end.failure);
  const std::string path = error_file(restarts, *end.first_failed);
  if (const auto message = read_error_file(runtime_.files(), path)) text += ": " + *message;
  if (restarts > 0)
    text += fmt::format(" (after {} of {} restarts)", restarts, options_.max_restarts);
  say(text);
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
  const std::string rank = std::to_string(local_rank);
  const std::string size = std::to_string(options.local_world_size);
  for (const char* name : {"RANK", "LOCAL_RANK", "ROLE_RANK"}) variables[name] = rank;
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"}) {
    variables[name] = size;
  }
  variables["GROUP_RANK"] = "0";
  variables["GROUP_WORLD_SIZE"] = "1";
  variables["ROLE_NAME"] = options.role;
  variables["MASTER_ADDR"] = options.master_addr;
  variables["MASTER_PORT"] = std::to_string(attempt.master_port);
  variables["TORCHELASTIC_RESTART_COUNT"] = std::to_string(attempt.restarts);
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
  return Launch(actual, runtime, processes).run();
}

}  // namespace ddproof
