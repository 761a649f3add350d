// DDP on CUDA devices over the backend `nccl`: buckets are reduced where they are made. On the
// stand-in, whose sums have one order, that gives the bits of ranks that compute on the CPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/sim/sim_world.h"
#include "reference/compute/cpu.h"
#include "reference/compute/cuda/cuda.h"
#include "reference/model/models.h"
#include "reference/optim/adam.h"
#include "reference/optim/sgd.h"
#include "reference/optim/zero_optimizer.h"
#include "reference/train/state_digest.h"
#include "reference/train/trainer.h"
#include "tests/nccl/standin_world.h"
#include "tests/unit/naive_layers.h"

namespace ddproof {
namespace {

constexpr int kRanks = 3;
constexpr ImageShape kImage = {.channels = 1, .height = 9, .width = 11};
constexpr std::int64_t kClasses = 10;

// SGD, or AdamW with its state whole or divided over the ranks and gradients that are clipped.
enum class Update { kSgd, kAdamW, kDividedAdamW };

std::unique_ptr<Optimizer<float>> make_optimizer(Update update, Module<float>& model,
                                                 ProcessGroup& group) {
  if (update == Update::kSgd) {
    return std::make_unique<Sgd<float>>(model.parameters(),
                                        SgdOptions{.lr = 0.05, .momentum = 0.9});
  }
  auto adam = std::make_unique<Adam<float>>(
      model.parameters(), AdamOptions{.lr = 0.05, .weight_decay = 0.01, .decoupled = true});
  if (update == Update::kAdamW) return adam;
  return std::make_unique<ZeroOptimizer<float>>(std::move(adam), group);
}

// Each rank begins with other parameters, of which rank 0's count. Buckets of 20 kB. Of all state
// on rank 0, of the parameters on others. Batch norm, where the model has it, is over all ranks.
std::uint64_t train(const char* name, Device<float>& device, ProcessGroup& group, Update update) {
  const auto rank = static_cast<std::uint64_t>(group.rank());
  const auto model = make_model<float>(name, kImage, kClasses, device, 3 + rank, &group);
  const auto optimizer = make_optimizer(update, *model, group);
  const std::optional<ClipOptions> clip =
      update == Update::kSgd ? std::nullopt : std::optional(ClipOptions{.max_norm = 0.1});
  Trainer<float> trainer(*model, *optimizer, &group, {.bucket_cap_bytes = 20'000}, clip);
  std::mt19937_64 engine(8 + rank);
  for (int step = 0; step < 3; ++step) {
    Tensor<float> input(device, {2, kImage.channels, kImage.height, kImage.width});
    const auto values = testing::random_values<float>(engine, input.count());
    device.copy_from_host(input.data(), values.data(), input.count());
    trainer.step(input, std::vector<std::int64_t>{step, static_cast<std::int64_t>(rank)});
  }
  optimizer->consolidate(0);
  return rank == 0 ? state_digest(*optimizer, model->buffers())
                   : parameter_digest(optimizer->parameters());
}

std::set<std::uint64_t> digests(std::uint64_t seed, Update update,
                                const std::function<std::unique_ptr<Device<float>>(int)>& make,
                                const char* model = "cnn") {
  std::set<std::uint64_t> seen;
  const StandinReport report =
      run_standin_world({.world = {.world_size = kRanks, .seed = seed}}, [&](RankContext& rank) {
        const auto device = make(rank.group.rank());
        seen.insert(train(model, *device, rank.group, update));
      });
  rethrow(report.run);
  EXPECT_EQ(report.complaints, std::vector<std::string>{}) << "seed " << seed;
  return seen;
}

TEST(CudaDdp, TrainsWhatRanksOnTheCpuTrain) {
  const auto on_cpu = [](int) { return std::make_unique<Cpu<float>>(); };
  const auto on_cuda = [](int rank) { return std::make_unique<Cuda<float>>(rank); };
  const auto expected = digests(1, Update::kSgd, on_cpu);
  EXPECT_EQ(expected.size(), 2u);  // of rank 0, and of all others
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(digests(seed, Update::kSgd, on_cuda), expected) << "seed " << seed;
  }
}

TEST(CudaDdp, SharesTheStatisticsOfBatchNorm) {
  const auto on_cpu = [](int) { return std::make_unique<Cpu<float>>(); };
  const auto on_cuda = [](int rank) { return std::make_unique<Cuda<float>>(rank); };
  const auto expected = digests(1, Update::kSgd, on_cpu, "resnet8");
  EXPECT_EQ(expected.size(), 2u);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(digests(seed, Update::kSgd, on_cuda, "resnet8"), expected) << "seed " << seed;
  }
}

TEST(CudaDdp, DividesAdamsStateWithoutAChangeOfBits) {
  const auto expected =
      digests(1, Update::kAdamW, [](int) { return std::make_unique<Cpu<float>>(); });
  EXPECT_EQ(expected.size(), 2u);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(digests(seed, Update::kDividedAdamW,
                      [](int rank) { return std::make_unique<Cuda<float>>(rank); }),
              expected)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace ddproof
