// ddproof train: trains a model on one device, on simulated ranks, or as one rank of a launched
// world. Rank 0 reports.
#include "reference/train/train.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "backends/registry/registry.h"
#include "cli/arguments.h"
#include "cli/dataset.h"
#include "cli/device.h"
#include "cli/optimizer_flags.h"
#include "cli/progress.h"
#include "cli/run_files.h"
#include "cli/shell_word.h"
#include "cli/subcommand.h"
#include "cli/watched_backend.h"
#include "reference/data/data_loader.h"
#include "reference/launch/environment.h"
#include "reference/launch/launcher.h"
#include "reference/launch/rendezvous.h"

namespace ddproof {
namespace {

struct TrainCommand {
  std::string backend = "single";
  int world_size = 1;
  bool world_size_given = false;
  DatasetFlags data;
  DeviceFlags device;
  std::int64_t global_batch_size = 0;  // 0: the batch size is per rank
  double bucket_cap_mb = 25;
  std::string averaging = "world";
  int local_rank = 0;
  bool local_rank_given = false;
  double timeout_seconds = 1800;  // PyTorch's
  std::string metrics;
  bool json = false;
  RunFileFlags run_files;
  OptimizerFlags optimizer;
  TrainOptions train;
};

void declare_model_flags(Arguments& arguments, TrainCommand& command) {
  TrainOptions& train = command.train;
  arguments.choice("--model", train.model, {"mlp", "cnn", "resnet8", "deeplab"}, "what to train");
  arguments.flag("--sync-batch-norm", train.sync_batch_norm,
                 "batch norm over the batches of all ranks");
  declare_optimizer_flags(arguments, command.optimizer, train);
  arguments.number("--seed", train.seed, "of the parameters, the order and the simulator");
  arguments.number("--bucket-cap-mb", command.bucket_cap_mb, 1e-6, 1e6,
                   "size of a gradient bucket in MiB");
}

void declare_run_flags(Arguments& arguments, TrainCommand& command) {
  TrainOptions& train = command.train;
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  arguments.text("--backend", command.backend, "where the ranks are; see `ddproof backends`");
  arguments.number("--world-size", command.world_size, 1, kWorldSizeMax,
                   "ranks; with gloo the launcher decides");
  declare_dataset_flags(arguments, command.data);
  declare_device_flags(arguments, command.device);
  arguments.flag("--augment", train.augment,
                 "crop (padding 4) and mirror training images at random, the same on any rank");
  arguments.number("--epochs", train.epochs, 1, kMany, "passes over the training set");
  arguments.number("--start-epoch", train.start_epoch, 0, kMany,
                   "number of the first pass, when no checkpoint says it");
  arguments.number("-j,--workers", train.workers, 0, 1024,
                   "tasks that read two batches ahead each; 0 reads a batch when it is needed");
  arguments.number("--local-rank", command.local_rank, -1, kWorldSizeMax,
                   "as old launchers pass it; LOCAL_RANK must say the same");
  arguments.number("-b,--batch-size", train.batch_size, 1, kMany, "samples per rank and step");
  arguments.number("--global-batch-size", command.global_batch_size, 1, kMany,
                   "samples per step over all ranks, instead of --batch-size");
  arguments.number("--accumulate", train.accumulate, 1, kMany,
                   "batches whose gradients make one update");
  arguments.choice("--averaging", command.averaging, {"world", "samples"},
                   "mean over ranks, as PyTorch, or over all samples, also of uneven batches");
  arguments.choice("--comm-hook", train.comm_hook, {"allreduce", "fp16", "bf16"},
                   "how gradients travel");
  arguments.flag("--find-unused-parameters", train.find_unused_parameters,
                 "parameters that a rank's backward does not reach count as zeros");
  arguments.number("--max-steps", train.max_steps, 0, kMany, "stop after this many; 0: no limit");
  arguments.flag("--eval", train.evaluate, "evaluate on the test set at the end");
  arguments.text("--checkpoint-dir", train.checkpoint_directory, "write checkpoints here");
  arguments.number("--checkpoint-every", train.checkpoint_every, 0, kMany,
                   "steps; 0: at the end of each epoch and of the run");
  arguments.flag("--resume", train.resume, "go on from the checkpoint, if there is one");
  arguments.text("--metrics", command.metrics, "write one JSON line per step to this file");
  arguments.number("--timeout", command.timeout_seconds, 1e-3, 1e6,
                   "seconds that a rank waits for the others: to meet, and in each collective");
  declare_run_file_flags(arguments, command.run_files, "the run");
  arguments.flag("--json", command.json, "print the result as JSON");
}

// Empty when help was asked for.
std::optional<TrainCommand> parse(CommandContext& context) {
  TrainCommand command;
  Arguments arguments("ddproof train", "Trains a model; the same on every backend.");
  declare_run_flags(arguments, command);
  declare_model_flags(arguments, command);
  if (!arguments.parse(context.arguments, context.out)) return std::nullopt;
  apply_optimizer_flags(arguments, command.optimizer, command.train);
  command.world_size_given = arguments.given("--world-size");
  command.local_rank_given = arguments.given("--local-rank");
  if (arguments.given("--batch-size") && arguments.given("--global-batch-size")) {
    throw ConfigError("--batch-size and --global-batch-size exclude each other");
  }
  if (command.data.directory.empty())
    throw ConfigError("--data is missing: the directory of the data set");
  command.train.averaging =
      command.averaging == "samples" ? Averaging::kSamples : Averaging::kWorld;
  command.train.bucket_cap_bytes = static_cast<std::int64_t>(command.bucket_cap_mb * 0x1p20);
  return command;
}

ProgressStyle progress_style(const CommandContext& context) {
  if (isatty(STDERR_FILENO) == 1) return ProgressStyle::kBar;
  const bool is_watched = context.runtime.environment().get(kProgressVariable) == "lines";
  return is_watched ? ProgressStyle::kLines : ProgressStyle::kSilent;
}

// Rank 0's: shows progress and writes the metrics file.
class Reporter : public TrainObserver {
 public:
  Reporter(const TrainCommand& command, CommandContext& context)
      : context_(context), progress_(context.err, progress_style(context)), path_(command.metrics) {
    if (command.metrics.empty()) return;
    earlier_ = earlier_metrics(command);
    if (earlier_.empty()) metrics_ = context_.runtime.files().create(command.metrics);
  }

  void on_step(const StepRecord& record) override {
    progress_.show(record.step, record.steps,
                   fmt::format("step {}/{}  epoch {}  loss {:.4f}", record.step, record.steps,
                               record.epoch, record.metrics.loss()),
                   context_.runtime.now());
    if (!earlier_.empty()) go_on_with_metrics(record.step);
    if (!metrics_) return;
    const nlohmann::ordered_json line = {
        {"step", record.step},
        {"epoch", record.epoch},
        {"loss", record.metrics.loss()},
        {"accuracy", record.metrics.accuracy()},
        {"samples", record.metrics.samples},
        {"seconds", std::chrono::duration<double>(record.elapsed).count()}};
    const std::string text = line.dump() + "\n";
    metrics_->append(std::as_bytes(std::span(text)));
  }

  void on_warning(const std::string& text) override {
    progress_.clear();
    context_.err << "ddproof train: warning: " << text << "\n";
  }

  void finish() { progress_.clear(); }

 private:
  std::string earlier_metrics(const TrainCommand& command) {
    FileSystem& files = context_.runtime.files();
    if (!command.train.resume || !files.exists(command.metrics)) return "";
    const std::vector<std::byte> bytes = read_file(files, command.metrics);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // A resumed run adds to what its file has, less the steps that it makes again and a torn line.
  void go_on_with_metrics(std::int64_t first_step) {
    std::istringstream lines(std::exchange(earlier_, ""));
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.value("step", first_step) < first_step) kept += line + "\n";
    }
    metrics_ = context_.runtime.files().create(path_);
    metrics_->append(std::as_bytes(std::span(kept)));
  }

  CommandContext& context_;
  Progress progress_;
  std::string path_;     // of the metrics
  std::string earlier_;  // what the file held, until the first step
  std::unique_ptr<File> metrics_;
};

struct Outcome {
  TrainSummary summary;
  WorldReport world;
  int world_size = 1;
  std::string started_by;  // who started this rank; empty: nobody
  Duration wall{0};
};

nlohmann::ordered_json to_json(const TrainCommand& command, const Outcome& outcome) {
  const TrainSummary& summary = outcome.summary;
  nlohmann::ordered_json result = {
      {"backend", command.backend},
      {"world_size", outcome.world_size},
      {"model", command.train.model},
      {"steps", summary.steps},
      {"loss", summary.last_step.loss()},  // null when no step was left
      {"samples", summary.samples},
      {"seconds", std::chrono::duration<double>(outcome.wall).count()},
      {"parameter_digest", fmt::format("{:016x}", summary.parameter_digest)},
      {"state_digest", fmt::format("{:016x}", summary.state_digest)},
      {"ranks_agree", summary.ranks_agree}};
  if (command.train.evaluate) {
    result["test"] = {{"loss", summary.evaluation.loss()},
                      {"accuracy", summary.evaluation.accuracy()},
                      {"samples", summary.evaluation.samples}};
  }
  if (!outcome.started_by.empty()) result["started_by"] = outcome.started_by;
  if (outcome.world.digest != 0) {
    result["simulation"] = {
        {"digest", fmt::format("{:016x}", outcome.world.digest)},
        {"virtual_seconds", std::chrono::duration<double>(outcome.world.virtual_time).count()},
        {"messages", outcome.world.messages},
        {"bytes", outcome.world.bytes}};
  }
  return result;
}

void print(const TrainCommand& command, const Outcome& outcome, std::ostream& out) {
  const TrainSummary& summary = outcome.summary;
  const double seconds = std::chrono::duration<double>(outcome.wall).count();
  out << fmt::format("{} on {}, {} rank{}{}: ", command.train.model, command.backend,
                     outcome.world_size, outcome.world_size == 1 ? "" : "s",
                     outcome.started_by.empty() ? "" : " by " + outcome.started_by);
  if (summary.samples == 0) {
    out << fmt::format("nothing to do, the checkpoint has {} steps\n", summary.steps);
  } else {
    out << fmt::format("{} steps, loss {:.4f}, {} samples in {:.1f} s\n", summary.steps,
                       summary.last_step.loss(), summary.samples, seconds);
  }
  if (command.train.evaluate) {
    out << fmt::format("test accuracy {:.2f} %, loss {:.4f} ({} samples)\n",
                       100 * summary.evaluation.accuracy(), summary.evaluation.loss(),
                       summary.evaluation.samples);
  }
  out << fmt::format("state digest {:016x}", summary.state_digest);
  if (outcome.world_size > 1) {
    out << "; ranks agree bit for bit: " << (summary.ranks_agree ? "yes" : "NO");
  }
  out << "\n";
}

// Simulated ranks do the same again when told the same.
void print_replay(CommandContext& context) {
  context.err << "ddproof train: replay: ddproof train";
  for (const std::string& word : context.arguments) context.err << " " << shell_word(word);
  context.err << std::endl;
}

// Runs the ranks that this process holds; returns what rank 0 saw, or empty when rank 0 is
// elsewhere.
class TrainProgram {
 public:
  TrainProgram(TrainCommand command, CommandContext& context)
      : command_(std::move(command)),
        context_(context),
        environment_(read_launch_environment(context.runtime.environment())),
        backend_(make_backend(command_.backend), command_.run_files, context.runtime.files()) {}

  std::optional<Outcome> run() {
    validate(command_.train);
    const int world_size = decide_world_size(backend_);
    require_local_rank();
    if (is_alone(backend_, world_size)) require_no_flight_recorder();
    require_device_fits(command_.device, backend_, !is_alone(backend_, world_size));
    if (command_.global_batch_size > 0) {
      command_.train.batch_size = local_batch_size(command_.global_batch_size, world_size);
    }
    FileSystem& files = context_.runtime.files();
    train_set_ = read_dataset(command_.data, files, Split::kTrain);
    if (command_.train.evaluate) test_set_ = read_dataset(command_.data, files, Split::kTest);
    backend_.open_files();
    const TimePoint begin = context_.runtime.now();
    Outcome outcome{.world_size = world_size};
    bool has_rank_zero = false;
    try {
      has_rank_zero = run_ranks(backend_, outcome);
    } catch (...) {
      backend_.tell_of_failure(context_.err);
      if (backend_.capabilities().virtual_time) print_replay(context_);
      throw;
    }
    outcome.wall = context_.runtime.now() - begin;
    if (!has_rank_zero) return std::nullopt;
    return outcome;
  }

  // What is not written yet of the files of the run. Call when its outcome is printed.
  void keep_files() { backend_.keep(); }

 private:
  // The flag that old launchers add says what their variables say.
  void require_local_rank() const {
    if (!command_.local_rank_given || command_.local_rank == environment_.local_rank) return;
    if (!environment_.distributed && command_.local_rank <= 0) return;
    throw ConfigError(fmt::format(
        "--local-rank is {}, LOCAL_RANK is {}; let `ddproof run` or torchrun start the ranks",
        command_.local_rank,
        environment_.distributed ? std::to_string(environment_.local_rank) : "not set"));
  }

  // One rank that makes no calls at all.
  bool is_alone(const Backend& backend, int world_size) const {
    return world_size == 1 && !launched(backend) && !backend.capabilities().virtual_time;
  }

  void require_no_flight_recorder() const {
    if (command_.run_files.flight_recorder.empty()) return;
    throw ConfigError("--flight-recorder: one rank alone makes no calls; leave it out");
  }

  Duration timeout() const { return Duration(std::llround(command_.timeout_seconds * 1e9)); }

  bool launched(const Backend& backend) const {
    return backend.joins_processes() && environment_.distributed;
  }

  int decide_world_size(const Backend& backend) const {
    if (launched(backend)) {
      if (command_.world_size_given && command_.world_size != environment_.world_size) {
        throw ConfigError(fmt::format(
            "--world-size is {}, but the world has {} ranks (from {}); leave the flag out",
            command_.world_size, environment_.world_size, environment_.source));
      }
      return environment_.world_size;
    }
    if (environment_.world_size > 1) {
      throw ConfigError(
          fmt::format("--backend {} lives in one process, but the world has {} ranks (from {}); "
                      "use --backend gloo",
                      command_.backend, environment_.world_size, environment_.source));
    }
    if (backend.joins_processes() && command_.world_size > 1) {
      throw ConfigError(
          fmt::format("--backend {} --world-size {}: no launcher started this process; use "
                      "`ddproof run --nproc-per-node {} -- ddproof train ...`{}",
                      command_.backend, command_.world_size, command_.world_size,
                      environment_.remark.empty() ? "" : " (" + environment_.remark + ")"));
    }
    return command_.world_size;
  }

  int device_index(const ProcessGroup* group) const {
    if (launched(backend_)) return environment_.local_rank;
    return group != nullptr ? group->rank() : 0;
  }

  TrainSummary train_rank(ProcessGroup* group, Runtime& runtime) {
    const TrainData data{*train_set_, test_set_.get()};
    const std::unique_ptr<Device<float>> device =
        make_device(command_.device, backend_, device_index(group));
    if (group != nullptr && group->rank() != 0) {
      return train(command_.train, data, group, runtime, nullptr, device.get());
    }
    Reporter reporter(command_, context_);
    TrainSummary summary = train(command_.train, data, group, runtime, &reporter, device.get());
    reporter.finish();
    return summary;
  }

  // True when rank 0 was among them.
  bool run_ranks(Backend& backend, Outcome& outcome) {
    if (launched(backend)) return run_launched(backend, outcome);
    if (is_alone(backend, outcome.world_size)) {
      outcome.summary = train_rank(nullptr, context_.runtime);
      return true;
    }
    outcome.world = backend.run_world({.world_size = outcome.world_size,
                                       .seed = command_.train.seed,
                                       .timeout = timeout(),
                                       .files = &context_.runtime.files()},
                                      [&](RankContext& rank) {
                                        const TrainSummary summary =
                                            train_rank(&rank.group, rank.runtime);
                                        if (rank.group.rank() == 0) outcome.summary = summary;
                                      });
    return true;
  }

  bool run_launched(Backend& backend, Outcome& outcome) {
    Rendezvous rendezvous(context_.runtime, environment_, timeout(), [this](const auto& why) {
      context_.err << "ddproof train: rank " << environment_.rank << ": " << why << std::endl;
    });
    const std::unique_ptr<ProcessGroup> group =
        backend.join({.rank = environment_.rank,
                      .world_size = environment_.world_size,
                      .timeout = timeout(),
                      .store_host = rendezvous.store_host()},
                     context_.runtime, rendezvous.store());
    outcome.summary = train_rank(group.get(), context_.runtime);
    outcome.started_by = environment_.source;
    return environment_.rank == 0;
  }

  TrainCommand command_;
  CommandContext& context_;
  LaunchEnvironment environment_;
  WatchedBackend backend_;
  std::unique_ptr<Dataset> train_set_;
  std::unique_ptr<Dataset> test_set_;
};

}  // namespace

int train_command(CommandContext& context) {
  const std::optional<TrainCommand> command = parse(context);
  if (!command) return kExitHolds;
  TrainProgram program(*command, context);
  const std::optional<Outcome> outcome = program.run();
  if (outcome && command->json) {
    context.out << to_json(*command, *outcome).dump() << "\n";
  } else if (outcome) {
    print(*command, *outcome, context.out);
  }
  program.keep_files();
  return !outcome || outcome->summary.ranks_agree ? kExitHolds : kExitFailed;
}

}  // namespace ddproof
