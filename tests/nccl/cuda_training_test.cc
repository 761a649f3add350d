// Whole trainings on Cuda<T>: the bits of Cpu<T>, in every order that streams may take.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "reference/model/models.h"
#include "reference/optim/sgd.h"
#include "reference/train/state_digest.h"
#include "reference/train/trainer.h"
#include "tests/nccl/cuda_world.h"
#include "tests/unit/naive_layers.h"

namespace ddproof {
namespace {

constexpr ImageShape kTrainedImage = {.channels = 1, .height = 9, .width = 11};
constexpr std::int64_t kTrainedClasses = 10;
constexpr std::int64_t kBatches[] = {5, 8, 1, 3};

// Of the losses, parameters and momentum. `loader` copies the input to the device.
template <class T>
std::uint64_t train(const std::string& name, Device<T>& device, Device<T>& loader) {
  const auto model = make_model<T>(name, kTrainedImage, kTrainedClasses, device, 3);
  Sgd<T> sgd(model->parameters(),
             {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
  Trainer<T> trainer(*model, sgd, nullptr, {});
  std::mt19937_64 engine(8);
  std::uint64_t digest = 0;
  for (const std::int64_t batch : kBatches) {
    Tensor<T> input(device,
                    {batch, kTrainedImage.channels, kTrainedImage.height, kTrainedImage.width});
    const auto values = testing::random_values<T>(engine, input.count());
    loader.copy_from_host(input.data(), values.data(), input.count());
    std::vector<std::int64_t> labels;
    const std::int64_t rows =
        name == "deeplab" ? batch * kTrainedImage.height * kTrainedImage.width : batch;
    for (std::int64_t i = 0; i < rows; ++i) labels.push_back((i * 7 + batch) % kTrainedClasses);
    const MetricSums sums = trainer.step(input, labels);
    digest = digest * 31 + std::bit_cast<std::uint64_t>(sums.loss_sum);
  }
  return digest + state_digest(sgd, model->buffers());
}

template <class T>
void expect_bits_of_cpu(const std::string& name) {
  Cpu<T> cpu;
  const std::uint64_t expected = train<T>(name, cpu, cpu);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    on_cuda(
        [&] {
          Cuda<T> cuda(0);
          EXPECT_EQ(train<T>(name, cuda, cuda), expected) << "seed " << seed;
        },
        seed);
  }
}

TEST(CudaTraining, TheMlpHasTheBitsOfTheCpu) {
  expect_bits_of_cpu<float>("mlp");
  expect_bits_of_cpu<double>("mlp");
}

TEST(CudaTraining, TheCnnHasTheBitsOfTheCpu) {
  expect_bits_of_cpu<float>("cnn");
  expect_bits_of_cpu<double>("cnn");
}

TEST(CudaTraining, TheResNetHasTheBitsOfTheCpu) {
  expect_bits_of_cpu<float>("resnet8");
  expect_bits_of_cpu<double>("resnet8");
}

TEST(CudaTraining, DeepLabHasTheBitsOfTheCpu) { expect_bits_of_cpu<float>("deeplab"); }

// Whether a step fails when its wait with that number does.
bool waits_in_a_step(int number) {
  bool failed = false;
  const standin::Script script{
      .call = "cudaStreamSynchronize", .number = number, .code = cudaErrorUnknown};
  const std::vector<std::string> complaints = complaints_on_cuda(
      [&] {
        Cuda<float> cuda(0);
        const auto model = make_model<float>("cnn", kTrainedImage, kTrainedClasses, cuda, 3);
        Sgd<float> sgd(model->parameters(), {.lr = 0.05, .momentum = 0.9});
        Trainer<float> trainer(*model, sgd, nullptr, {});
        const Tensor<float> input(
            cuda, {2, kTrainedImage.channels, kTrainedImage.height, kTrainedImage.width});
        try {
          trainer.step(input, std::vector<std::int64_t>{1, 2});
        } catch (const ResourceError&) {
          failed = true;
        }
      },
      1, {.scripts = {script}});
  EXPECT_EQ(complaints, std::vector<std::string>{});
  return failed;
}

TEST(CudaTraining, AStepWaitsForItsMetricsAlone) {
  EXPECT_TRUE(waits_in_a_step(1));  // the losses
  EXPECT_TRUE(waits_in_a_step(2));  // the logits
  EXPECT_FALSE(waits_in_a_step(3));
}

TEST(CudaTraining, InputThatAnotherStreamCopiesIsSeenToBeMissing) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    (void)complaints_on_cuda(
        [&] {
          Cuda<float> cuda(0), loader(0);
          seen.insert(train<float>("cnn", cuda, loader));
          float last = 0;
          loader.copy_to_host(&last, nullptr, 0);  // waits for it
        },
        seed);
  }
  EXPECT_GT(seen.size(), 1u);
}

}  // namespace
}  // namespace ddproof
