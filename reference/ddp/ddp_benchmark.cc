// Data-parallel training on processes over Gloo, beside PyTorch's DistributedDataParallel over its
// Gloo: the same models, batches, buckets and optimizer, in alternating rounds of one run. Prints
// the time of a step, how much of its communication is exposed (backward waits for it), and the
// memory that training takes on rank 0, beside what it should take.
//
//   ddp_benchmark [MODEL]                           all of it, in about ten minutes, or one model
//   ddp_benchmark rank MODEL BATCH STEPS COMPARED   is a rank that `ddproof run` starts
//
// COMPARED is 1 where ranks compare their calls before data moves. Here they do unless told not to
// (backends/checked), in PyTorch only with TORCH_DISTRIBUTED_DEBUG=DETAIL. Both ways are measured
// for the mlp alone: it is a time for each call, which the shortest steps show best.
//
// Each round starts new processes on both sides, one thread each, which make kWarmUpSteps and then
// STEPS that are timed together. Communication is that of the last warm-up steps, since PyTorch
// measures the first ten. OPENBLAS_CORETYPE is taken out of PyTorch's environment, since some
// machines set it to a slower kernel than the one it would choose. Without PyTorch only this side
// is printed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backends/local/os_measure.h"
#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"
#include "reference/ddp/distributed_data_parallel.h"
#include "reference/launch/rendezvous.h"
#include "reference/model/loss.h"
#include "reference/model/models.h"
#include "reference/optim/sgd.h"

namespace ddproof {
namespace {

constexpr int kRounds = 5;
constexpr int kWarmUpSteps = 10;
constexpr int kFirstMeasured = 3;  // of them: the buckets are rebuilt after the first
constexpr std::int64_t kBatch = 64;

struct BenchmarkedModel {
  const char* name;
  int steps;  // of a round
  std::int64_t parameters;
  std::vector<std::int64_t> activations;  // numbers that each layer gives for a sample
};

const std::vector<BenchmarkedModel>& models() {
  static const std::vector<BenchmarkedModel> list = {
      {"mlp", 100, 669'706, {512, 512, 512, 512, 10}},
      {"cnn", 20, 421'642, {25'088, 25'088, 6'272, 12'544, 12'544, 3'136, 128, 128, 10}},
      {"wide", 4, 20'037'642, {4'096, 4'096, 4'096, 4'096, 10}}};
  return list;
}

// What one run of a world says.
struct Result {
  double step = 0;           // seconds
  double communication = 0;  // of a step, from the first bucket to the end of the last
  double overlap = 0;        // of it, while backward computed
  double memory = 0;         // bytes, the highest on rank 0 less what it had before the model
};

constexpr const char* kResult = "result";

// ---- a rank

std::unique_ptr<Module<float>> make_wide(Device<float>& device) {
  constexpr std::int64_t kHidden = 4096;
  std::vector<std::unique_ptr<Module<float>>> layers;
  layers.push_back(std::make_unique<Flatten<float>>());
  layers.push_back(std::make_unique<Linear<float>>(device, "fc1", 784, kHidden, 1));
  layers.push_back(std::make_unique<ReLU<float>>(device));
  layers.push_back(std::make_unique<Linear<float>>(device, "fc2", kHidden, kHidden, 1));
  layers.push_back(std::make_unique<ReLU<float>>(device));
  layers.push_back(std::make_unique<Linear<float>>(device, "fc3", kHidden, 10, 1));
  auto model = std::make_unique<Sequential<float>>(std::move(layers));
  model->set_input_gradient_needed(false);
  return model;
}

std::unique_ptr<Module<float>> make_benchmarked(const std::string& name, Device<float>& device) {
  if (name == "wide") return make_wide(device);
  return make_model<float>(name, {}, 10, device, 1);
}

class Rank {
 public:
  Rank(const std::string& model, std::int64_t batch, ProcessGroup& group, Runtime& runtime)
      : group_(group), runtime_(runtime), images_(device_, {batch, 1, 28, 28}) {
    for (std::int64_t i = 0; i < images_.count(); ++i) {
      const std::int64_t index = group.rank() * images_.count() + i;
      images_.data()[i] =
          static_cast<float>(static_cast<std::uint32_t>(index * 2654435761) * 0x1p-32);
    }
    for (std::int64_t i = 0; i < batch; ++i) labels_.push_back(i % 10);
    forget_peak_memory();
    before_ = resident_memory();
    model_ = make_benchmarked(model, device_);
    ddp_.emplace(*model_, group, DdpOptions{.runtime = &runtime});
    optimizer_.emplace(model_->parameters(), SgdOptions{.lr = 0.01, .momentum = 0.9});
  }

  Result run(int steps) {
    Result result;
    std::vector<double> communication, overlap;
    for (int i = 0; i < kWarmUpSteps; ++i) {
      step();
      if (i < kFirstMeasured) continue;
      const DdpLoggingData data = ddp_->logging_data();
      communication.push_back(1e-9 * static_cast<double>(data.integers.at("backward_comm_time")));
      overlap.push_back(
          1e-9 * static_cast<double>(data.integers.at("backward_compute_comm_overlap_time")));
    }
    result.communication = summarize(communication).median;
    result.overlap = summarize(overlap).median;
    group_.barrier()->wait();
    const TimePoint start = runtime_.now();
    for (int i = 0; i < steps; ++i) step();
    result.step = std::chrono::duration<double>(runtime_.now() - start).count() / steps;
    result.memory = static_cast<double>(peak_memory() - before_);
    return result;
  }

 private:
  void step() {
    zero_grad(*model_);
    loss_.forward(ddp_->forward(images_), labels_);
    ddp_->backward(loss_.backward(), {});
    optimizer_->step();
  }

  ProcessGroup& group_;
  Runtime& runtime_;
  Cpu<float> device_;
  Tensor<float> images_;
  std::vector<std::int64_t> labels_;
  std::int64_t before_ = 0;
  std::unique_ptr<Module<float>> model_;
  std::optional<Sgd<float>> optimizer_;
  std::optional<DistributedDataParallel<float>> ddp_;
  SoftmaxCrossEntropy<float> loss_;
};

int be_a_rank(const std::string& model, std::int64_t batch, int steps, bool compared) {
  OsRuntime runtime;
  const LaunchEnvironment launch = read_launch_environment(runtime.environment());
  Rendezvous rendezvous(runtime, launch, std::chrono::minutes(1));
  const std::unique_ptr<ProcessGroup> group = make_backend("gloo")->join(
      {.rank = launch.rank, .world_size = launch.world_size, .checked = compared}, runtime,
      rendezvous.store());
  const Result result = Rank(model, batch, *group, runtime).run(steps);
  if (launch.rank == 0) {
    std::printf("%s %.9f %.9f %.9f %.0f\n", kResult, result.step, result.communication,
                result.overlap, result.memory);
  }
  return 0;
}

// ---- all ranks, both sides

std::string quoted(const std::string& path) { return "'" + path + "'"; }

// Runs a command of the shell and returns what its line `result ...` says.
Result run(const std::string& command) {
  FILE* output = popen(command.c_str(), "r");
  std::optional<Result> result;
  char line[4096];
  while (output != nullptr && fgets(line, sizeof line, output) != nullptr) {
    const std::string text(line);
    const auto at = text.find(std::string(kResult) + " ");
    if (at == std::string::npos) continue;
    std::istringstream numbers(text.substr(at + std::string(kResult).size()));
    result.emplace();
    numbers >> result->step >> result->communication >> result->overlap >> result->memory;
  }
  if (output == nullptr || pclose(output) != 0 || !result) {
    throw ResourceError("no result from: " + command);
  }
  return *result;
}

std::string launched(int world) {
  return quoted(DDPROOF_PROGRAM) + " run --standalone --nproc-per-node " + std::to_string(world) +
         " -- ";
}

std::string job(const BenchmarkedModel& model) {
  return fmt::format(" {} {} {}", model.name, kBatch, model.steps);
}

// The python3 that has torch; empty: none.
std::string find_torch() {
  for (const std::string python : {"/usr/bin/python3", "python3"}) {
    if (std::system((python + " -c 'import torch' 2>/dev/null").c_str()) == 0) return python;
  }
  return "";
}

// PyTorch cannot speak to our launcher's store, so its ranks meet at a file.
Result run_torch(const std::string& python, const BenchmarkedModel& model, int world,
                 bool compared) {
  char folder[] = "/tmp/ddp_benchmark.XXXXXX";
  if (mkdtemp(folder) == nullptr) throw ResourceError("no folder in /tmp");
  const std::string meeting = std::string(folder) + "/meeting";
  const Result result =
      run(std::string("GLOO_SOCKET_IFNAME=lo TORCH_DISTRIBUTED_DEBUG=") +
          (compared ? "DETAIL" : "OFF") + " env -u OPENBLAS_CORETYPE " + launched(world) + python +
          " " + quoted(DDPROOF_DDP_BENCHMARK_PY) + job(model) + " " + meeting + " 2>/dev/null");
  std::remove(meeting.c_str());
  std::remove(folder);
  return result;
}

struct Side {
  std::vector<double> step, exposed, communication, memory;
  void add(const Result& result) {
    step.push_back(1e3 * result.step);
    exposed.push_back(1e3 * (result.communication - result.overlap));
    communication.push_back(1e3 * result.communication);
    memory.push_back(result.memory * 0x1p-20);
  }
};

std::string spread(const std::vector<double>& values, int digits) {
  const Summary summary = summarize(values);
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", summary.median, digits, summary.min, digits,
                     summary.max, digits);
}

// "exposed/all" of a step's communication.
std::string communication(const Side& side) {
  return fmt::format("{:.2f}/{:.2f}", summarize(side.exposed).median,
                     summarize(side.communication).median);
}

// Bytes. Values, gradients and momentum, and buckets twice while they are rebuilt: the gradients
// lie in one set of them. What each layer gives, and its gradient. Gloo's ring holds two of the
// segments (gloo/allreduce.cc) of the largest all-reduce, which is the first step's: all gradients.
double expected_memory(const BenchmarkedModel& model, int world) {
  constexpr std::int64_t kSegmentBytes = 1 << 20;
  const std::int64_t bytes = 4 * model.parameters;
  const std::int64_t outputs =
      std::accumulate(model.activations.begin(), model.activations.end(), std::int64_t{0});
  const std::int64_t segments =
      std::max<std::int64_t>((bytes + kSegmentBytes - 1) / kSegmentBytes, 2 * world);
  const std::int64_t ring = world == 1 ? 0 : 2 * (bytes / segments);
  return static_cast<double>(4 * bytes + 4 * kBatch * 2 * outputs + ring);
}

void print(const BenchmarkedModel& model, int world, bool compared, const Side& ours,
           const Side& theirs) {
  const double expected = expected_memory(model, world) * 0x1p-20;
  const double memory = summarize(ours.memory).median;
  fmt::print("{:<5} {:>5}  {:<8}  {:<23}", model.name, world, compared ? "yes" : "no",
             spread(ours.step, 2));
  if (!theirs.step.empty()) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < ours.step.size(); ++i) {
      ratios.push_back(theirs.step[i] / ours.step[i]);
    }
    fmt::print("  {:<25}  {:<18}", spread(theirs.step, 2), spread(ratios, 2));
  }
  fmt::print("  {:<13}", communication(ours));
  if (!theirs.step.empty()) fmt::print("  {:<13}", communication(theirs));
  fmt::print("  {:>5.1f} / {:>5.1f} = {:.2f}", memory, expected, memory / expected);
  if (!theirs.step.empty()) fmt::print("  {:>9.1f}", summarize(theirs.memory).median);
  fmt::print("\n");
  std::fflush(stdout);
}

void print_head(bool with_torch) {
  double load = 0;
  getloadavg(&load, 1);
  fmt::print(
      "DDP over Gloo on 127.0.0.1: a process of one thread for each rank, batch {} a rank, SGD "
      "with "
      "momentum\n{}; load of the machine before: {:.2f}; {} rounds: median [min, max]\n"
      "comm: of a step, exposed/all; memory: of rank 0, measured / expected: 4 x parameters "
      "(values, "
      "gradients,\nmomentum, and buckets twice while they are rebuilt) + 2 x what the layers give "
      "(and "
      "its gradient) + 2 segments of Gloo\ncompared: whether ranks compare their calls before data "
      "moves, in PyTorch by TORCH_DISTRIBUTED_DEBUG=DETAIL\n\n",
      kBatch,
      with_torch ? "beside PyTorch (ratio: its time over ours)"
                 : "PyTorch not found (install python3-torch)",
      load, kRounds);
  fmt::print("{:<5} {:>5}  {:<8}  {:<23}", "model", "ranks", "compared", "step, ms");
  if (with_torch) fmt::print("  {:<25}  {:<18}", "PyTorch's", "ratio");
  fmt::print("  {:<13}", "comm, ms");
  if (with_torch) fmt::print("  {:<13}", "PyTorch's");
  fmt::print("  {:<22}{}\n", "memory, MiB", with_torch ? "  PyTorch's" : "");
  std::fflush(stdout);
}

void compare(const std::string& program, const std::string& python, const BenchmarkedModel& model,
             int world, bool compared) {
  Side ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    ours.add(
        run(launched(world) + quoted(program) + " rank" + job(model) + (compared ? " 1" : " 0")));
    if (!python.empty()) theirs.add(run_torch(python, model, world, compared));
  }
  print(model, world, compared, ours, theirs);
}

// An empty `only`: all models.
int run_all(const std::string& program, const std::string& only) {
  const std::string python = find_torch();
  print_head(!python.empty());
  for (const BenchmarkedModel& model : models()) {
    if (!only.empty() && only != model.name) continue;
    for (const int world : {1, 2, 4}) {
      compare(program, python, model, world, false);
      if (world > 1 && model.name == std::string("mlp"))
        compare(program, python, model, world, true);
    }
  }
  return 0;
}

}  // namespace
}  // namespace ddproof

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() == 6 && words[1] == "rank") {
    return ddproof::be_a_rank(words[2], std::stoll(words[3]), std::stoi(words[4]), words[5] == "1");
  }
  return ddproof::run_all(words[0], words.size() > 1 ? words[1] : "");
}
