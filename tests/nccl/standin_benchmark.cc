// What the stand-in costs: 64 ranks that train the MLP on `nccl` over the CPU stand-in, beside the
// same ranks on `sim`. The ratio's target: at most 1.5.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "backends/local/os_measure.h"
#include "backends/sim/sim_world.h"
#include "reference/compute/cpu.h"
#include "reference/compute/cuda/cuda.h"
#include "reference/model/models.h"
#include "reference/optim/sgd.h"
#include "reference/train/trainer.h"
#include "tests/nccl/standin_world.h"

namespace ddproof {
namespace {

constexpr int kRanks = 64, kSteps = 5, kRuns = 5;
constexpr std::int64_t kBatch = 64;

using MakeDevice = std::function<std::unique_ptr<Device<float>>(int rank)>;

std::unique_ptr<Device<float>> make_cpu(int) { return std::make_unique<Cpu<float>>(); }
std::unique_ptr<Device<float>> make_cuda(int rank) { return std::make_unique<Cuda<float>>(rank); }

struct Stretch {
  double begin = 0, end = 0;
};

void train_rank(RankContext& rank, const MakeDevice& make_device, Stretch& stretch) {
  const auto device = make_device(rank.group.rank());
  const auto model = make_model<float>("mlp", {1, 28, 28}, 10, *device, 1);
  Sgd<float> optimizer(model->parameters(), {.lr = 0.05, .momentum = 0.9});
  Trainer<float> trainer(*model, optimizer, &rank.group, {});
  Tensor<float> input(*device, {kBatch, 1, 28, 28});
  std::vector<float> values(static_cast<std::size_t>(input.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 256) / 255.0F;
  device->copy_from_host(input.data(), values.data(), input.count());
  const std::vector<std::int64_t> labels(kBatch, rank.group.rank() % 10);
  for (int step = -2; step < kSteps; ++step) {  // two to warm up: the second rebuilds the buckets
    if (step == 0) {
      rank.group.barrier()->wait();
      if (stretch.begin == 0) stretch.begin = cpu_seconds();  // the first rank that goes on
    }
    trainer.step(input, labels);
  }
  rank.group.barrier()->wait();
  stretch.end = cpu_seconds();  // the last rank's stays
}

// CPU seconds of a step of all ranks.
double on_sim() {
  Stretch stretch;
  SimWorldOptions options;
  options.world.world_size = kRanks;
  rethrow(run_sim_world(options, [&](RankContext& rank) { train_rank(rank, make_cpu, stretch); }));
  return (stretch.end - stretch.begin) / kSteps;
}

double on_standin(const MakeDevice& make_device) {
  Stretch stretch;
  StandinWorldOptions options{.world = {.world_size = kRanks}, .machine = {.devices = kRanks}};
  rethrow(run_standin_world(options, [&](RankContext& rank) {
            train_rank(rank, make_device, stretch);
          }).run);
  return (stretch.end - stretch.begin) / kSteps;
}

void print(const char* what, const std::vector<double>& seconds, const std::vector<double>& sim) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < sim.size(); ++i) ratios.push_back(seconds[i] / sim[i]);
  const Summary time = summarize(seconds), ratio = summarize(ratios);
  std::printf("%-34s %8.1f ms (%.1f to %.1f), %.2f times sim (%.2f to %.2f)\n", what,
              time.median * 1e3, time.min * 1e3, time.max * 1e3, ratio.median, ratio.min,
              ratio.max);
}

}  // namespace
}  // namespace ddproof

int main() {
  using namespace ddproof;
  std::printf("64 ranks train the MLP, batch 64: CPU time of a step of all ranks, median of %d\n",
              kRuns);
  std::vector<double> sim, from_host, on_device;
  for (int run = 0; run < kRuns; ++run) {
    sim.push_back(on_sim());
    from_host.push_back(on_standin(make_cpu));
    on_device.push_back(on_standin(make_cuda));
  }
  print("sim, CPU", sim, sim);
  print("nccl on the stand-in, CPU", from_host, sim);
  print("nccl on the stand-in, CUDA's twins", on_device, sim);
}
