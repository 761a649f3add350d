// What talking costs 64 simulated ranks that train the MLP: CPU time of steps with DDP, beside the
// same 64 models trained without a group, taking turns step by step so that the caches see the
// same. Target: communication and switching take less than a third.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"
#include "reference/model/models.h"
#include "reference/train/trainer.h"

namespace ddproof {
namespace {

constexpr int kRanks = 64;
constexpr int kSteps = 8;
constexpr int kRuns = 5;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void train_rank(RankContext& rank, bool talks, std::int64_t batch_size, double& begin,
                double& end) {
  Cpu<float> device;
  const auto model = make_model<float>("mlp", {1, 28, 28}, 10, device, 1);
  Sgd<float> optimizer(model->parameters(), {.lr = 0.05, .momentum = 0.9});
  Trainer<float> trainer(*model, optimizer, talks ? &rank.group : nullptr, {});
  Tensor<float> input(device, {batch_size, 1, 28, 28});
  for (std::int64_t i = 0; i < input.count(); ++i) {
    input.data()[i] = static_cast<float>((i * 37 + rank.group.rank()) % 256) / 255.0F;
  }
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < batch_size; ++i) labels.push_back(i % 10);
  for (int step = -2; step < kSteps; ++step) {  // two to warm up: the second rebuilds the buckets
    rank.group.barrier()->wait();
    if (step == 0 && rank.group.rank() == 0) begin = cpu_seconds();
    trainer.step(input, labels);
  }
  rank.group.barrier()->wait();
  if (rank.group.rank() == 0) end = cpu_seconds();
}

// CPU seconds of a step of all ranks.
double measure(bool talks, std::int64_t batch_size) {
  double begin = 0;
  double end = 0;
  make_backend("sim")->run_world({.world_size = kRanks}, [&](RankContext& rank) {
    train_rank(rank, talks, batch_size, begin, end);
  });
  return (end - begin) / kSteps;
}

void print_row(std::int64_t batch_size) {
  std::vector<double> alone;
  std::vector<double> together;
  std::vector<double> shares;
  for (int run = 0; run < kRuns; ++run) {
    alone.push_back(measure(false, batch_size));
    together.push_back(measure(true, batch_size));
    shares.push_back(1 - alone.back() / together.back());
  }
  for (std::vector<double>* values : {&alone, &together, &shares}) std::ranges::sort(*values);
  std::printf("%5lld  %10.1f  %10.1f  %5.1f %% [%.1f, %.1f]\n", static_cast<long long>(batch_size),
              alone[kRuns / 2] * 1e3, together[kRuns / 2] * 1e3, shares[kRuns / 2] * 100,
              shares.front() * 100, shares.back() * 100);
}

}  // namespace
}  // namespace ddproof

int main() {
  std::printf("64 simulated ranks train the MLP; CPU ms per step of all ranks, median of 5\n");
  std::printf("batch       alone    with DDP  share of talking [min, max], target below 33.3 %%\n");
  for (const std::int64_t batch_size : {32, 64, 128}) ddproof::print_row(batch_size);
}
