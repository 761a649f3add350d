// DDP on CUDA devices over the backend `nccl`: buckets are reduced where they are made. On the
// stand-in, whose sums have one order, that gives the bits of ranks that compute on the CPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backends/sim/sim_world.h"
#include "reference/compute/cpu.h"
#include "reference/compute/cuda/cuda.h"
#include "reference/model/models.h"
#include "reference/optim/sgd.h"
#include "reference/train/state_digest.h"
#include "reference/train/trainer.h"
#include "tests/nccl/standin_world.h"
#include "tests/unit/naive_layers.h"

namespace ddproof {
namespace {

constexpr int kRanks = 3;
constexpr ImageShape kImage = {.channels = 1, .height = 9, .width = 11};
constexpr std::int64_t kClasses = 10;

// Each rank begins with other parameters, of which rank 0's count. Buckets of 20 kB.
std::uint64_t train(Device<float>& device, ProcessGroup& group) {
  const auto rank = static_cast<std::uint64_t>(group.rank());
  const auto model = make_model<float>("cnn", kImage, kClasses, device, 3 + rank);
  Sgd<float> sgd(model->parameters(), {.lr = 0.05, .momentum = 0.9});
  Trainer<float> trainer(*model, sgd, &group, {.bucket_cap_bytes = 20'000});
  std::mt19937_64 engine(8 + rank);
  for (int step = 0; step < 3; ++step) {
    Tensor<float> input(device, {2, kImage.channels, kImage.height, kImage.width});
    const auto values = testing::random_values<float>(engine, input.count());
    device.copy_from_host(input.data(), values.data(), input.count());
    trainer.step(input, std::vector<std::int64_t>{step, static_cast<std::int64_t>(rank)});
  }
  return state_digest(sgd);
}

std::set<std::uint64_t> digests(std::uint64_t seed,
                                const std::function<std::unique_ptr<Device<float>>(int)>& make) {
  std::set<std::uint64_t> seen;
  const StandinReport report =
      run_standin_world({.world = {.world_size = kRanks, .seed = seed}}, [&](RankContext& rank) {
        const auto device = make(rank.group.rank());
        seen.insert(train(*device, rank.group));
      });
  rethrow(report.run);
  EXPECT_EQ(report.complaints, std::vector<std::string>{}) << "seed " << seed;
  return seen;
}

TEST(CudaDdp, TrainsWhatRanksOnTheCpuTrain) {
  const auto expected = digests(1, [](int) { return std::make_unique<Cpu<float>>(); });
  EXPECT_EQ(expected.size(), 1u);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(digests(seed, [](int rank) { return std::make_unique<Cuda<float>>(rank); }), expected)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace ddproof
