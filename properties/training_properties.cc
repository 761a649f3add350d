#include "properties/training_properties.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reference/data/memory_dataset.h"
#include "reference/model/activation.h"
#include "reference/model/conv2d.h"
#include "reference/model/linear.h"
#include "reference/model/sequential.h"
#include "reference/oracle/exact_inputs.h"

namespace ddproof {
namespace {

constexpr int kClasses = 4;
constexpr std::int64_t kSide = 6;

// Hands activations through and multiplies gradients: a model whose gradients have any size.
// A power of two, so that it rounds nothing.
class GradientScale final : public Module<float> {
 public:
  GradientScale(Device<float>& device, int exponent)
      : device_(device), factor_(std::ldexp(1.0f, exponent)) {}

  const Tensor<float>& forward(const Tensor<float>& input) override { return input; }

  const Tensor<float>& backward(const Tensor<float>& output_gradient,
                                const GradientReady<float>&) override {
    if (scaled_.shape() != output_gradient.shape()) {
      scaled_ = Tensor<float>(device_, output_gradient.shape());
    }
    device_.scaled_copy(scaled_.data(), output_gradient.data(), factor_, scaled_.count());
    return scaled_;
  }

  std::vector<Parameter<float>*> parameters() override { return {}; }

 private:
  Device<float>& device_;
  float factor_;
  Tensor<float> scaled_;
};

std::unique_ptr<Module<float>> make_case_model(const TrainingCase& c, Device<float>& device) {
  std::vector<std::unique_ptr<Module<float>>> layers;
  const auto linear = [&](const char* name, std::int64_t in, std::int64_t out) {
    layers.push_back(std::make_unique<Linear<float>>(device, name, in, out, c.seed));
  };
  const auto relu = [&] { layers.push_back(std::make_unique<ReLU<float>>(device)); };
  std::int64_t features = kSide * kSide;
  if (c.model == TrainingCase::Model::kCnn) {
    const Conv2dOptions options{.out_channels = 3, .kernel = 3, .padding = 1};
    layers.push_back(std::make_unique<Conv2d<float>>(device, "conv1", options, c.seed));
    relu();
    layers.push_back(std::make_unique<MaxPool2d<float>>(device, "pool1", 2, 2));
    features = 3 * (kSide / 2) * (kSide / 2);
  }
  layers.push_back(std::make_unique<Flatten<float>>());
  if (c.model == TrainingCase::Model::kWide) {
    linear("fc1", features, 400);
    relu();
    linear("fc2", 400, 700);  // 1.1 MB: closes the first bucket
    relu();
    linear("fc3", 700, kClasses);
  } else {
    linear("fc1", features, 5);
    relu();
    linear("fc2", 5, kClasses);
  }
  layers.push_back(std::make_unique<GradientScale>(device, c.scale_exponent));
  return std::make_unique<Sequential<float>>(std::move(layers));
}

// As many samples as the case's steps need, uniform in [-1, 1).
TensorDataset make_case_data(const TrainingCase& c) {
  const std::int64_t samples = c.world_size * c.batch_size * c.steps;
  std::vector<float> values;
  std::vector<std::int64_t> labels;
  for (std::int64_t s = 0; s < samples; ++s) {
    const auto sample = static_cast<std::uint64_t>(s);
    for (std::uint64_t p = 0; p < kSide * kSide; ++p) {
      values.push_back(static_cast<float>(mixed_bits(c.seed, sample, p) >> 40) * 0x1p-23f - 1);
    }
    labels.push_back(static_cast<std::int64_t>(mixed_bits(c.seed, sample, ~0ull) % kClasses));
  }
  return TensorDataset({1, kSide, kSide}, kClasses, std::move(values), std::move(labels));
}

// Rates that keep an update of ordinary size, whatever the gradients' scale.
SgdOptions make_case_options(const TrainingCase& c) {
  return {.lr = std::ldexp(0.1, -c.scale_exponent),
          .momentum = c.momentum ? 0.9 : 0,
          .weight_decay = c.weight_decay ? std::ldexp(0.01, c.scale_exponent) : 0,
          .nesterov = c.nesterov && c.momentum};
}

const char* name_of(TrainingCase::Model model) {
  switch (model) {
    case TrainingCase::Model::kMlp: return "mlp";
    case TrainingCase::Model::kCnn: return "cnn";
    case TrainingCase::Model::kWide: return "wide";
  }
  return "";
}

std::string show_training(const TrainingCase& c) {
  return fmt::format(
      "world_size={} batch_size={} steps={} model={} gradients=2^{} momentum={} weight_decay={} "
      "nesterov={} small_buckets={} uneven={} seed={}",
      c.world_size, c.batch_size, c.steps, name_of(c.model), c.scale_exponent, c.momentum,
      c.weight_decay, c.nesterov, c.small_buckets, c.uneven, c.seed);
}

std::vector<std::string> classes_of_training(const TrainingCase& c, const PropertyWorld& world) {
  std::vector<std::string> classes = {name_of(c.model)};
  const auto add = [&classes](bool is, const char* name) {
    if (is) classes.push_back(name);
  };
  add(c.world_size == 1, "alone");
  add(c.world_size == world.world_size_max, "full world");
  add((c.world_size & (c.world_size - 1)) != 0, "inexact mean");
  add(c.scale_exponent != 0, "scaled gradients");
  add(c.momentum, "momentum");
  add(c.weight_decay, "weight decay");
  add(c.uneven && c.world_size > 1 && c.batch_size > 1, "uneven");
  add(c.model == TrainingCase::Model::kWide && c.steps > 1, "several buckets");
  return classes;
}

rc::Gen<TrainingCase> training_cases(const PropertyWorld& world) {
  using Model = TrainingCase::Model;
  // Choices by number, so that they shrink to the first.
  const auto model = rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 9));
  const auto scale = rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, 4));
  const auto flag = rc::gen::arbitrary<bool>();
  const auto parts =
      rc::gen::tuple(world_sizes(world), rc::gen::inRange(1, 7), rc::gen::inRange(1, 4), model,
                     scale, flag, flag, flag, flag, flag, rc::gen::arbitrary<std::uint32_t>());
  return rc::gen::map(parts, [](const auto& drawn) {
    constexpr Model kModels[] = {Model::kMlp, Model::kMlp, Model::kMlp, Model::kMlp, Model::kMlp,
                                 Model::kCnn, Model::kCnn, Model::kCnn, Model::kWide};
    constexpr int kExponents[] = {0, -17, -66, 40};  // about 1, 1e-5, 1e-20 and 1e12
    return TrainingCase{std::get<0>(drawn),
                        std::get<1>(drawn),
                        std::get<2>(drawn),
                        kModels[std::get<3>(drawn)],
                        kExponents[std::get<4>(drawn)],
                        std::get<5>(drawn),
                        std::get<6>(drawn),
                        std::get<7>(drawn),
                        std::get<8>(drawn),
                        std::get<9>(drawn),
                        std::get<10>(drawn)};
  });
}

}  // namespace

std::vector<StepComparison> run_training_case(const PropertyWorld& world, const TrainingCase& c) {
  const TensorDataset dataset = make_case_data(c);
  const TrainingJob job{.make_model = [&c](Device<float>& d) { return make_case_model(c, d); },
                        .dataset = dataset,
                        .seed = c.seed,
                        .batch_size = c.batch_size,
                        .uneven = c.uneven,
                        .micro_batches = c.uneven ? 3 : 1,
                        .steps = c.steps,
                        .sgd = make_case_options(c),
                        .ddp = {.bucket_cap_bytes = c.small_buckets ? 1024 : kDefaultBucketBytes,
                                .averaging = c.uneven ? Averaging::kSamples : Averaging::kWorld}};
  return compare_with_one_device(world, c.world_size, job);
}

PropertyResult equals_one_device(const PropertyWorld& world, const PropertyOptions& options,
                                 Runtime& runtime) {
  StepComparison largest;
  const auto check = [&](const TrainingCase& c) -> std::string {
    for (const StepComparison& step : run_training_case(world, c)) {
      if (!step.wrong.empty()) return step.wrong;
      largest.gradient = std::max(largest.gradient, step.gradient);
      largest.momentum = std::max(largest.momentum, step.momentum);
      largest.weight = std::max(largest.weight, step.weight);
    }
    return "";
  };
  const Property<TrainingCase> property{
      "equals-one-device", training_cases(world), show_training,
      [&world](const TrainingCase& c) { return classes_of_training(c, world); }, check};
  PropertyResult result = run_property(property, options, runtime);
  if (result.holds) {
    result.measures = {{"largest gradient error/bound", largest.gradient},
                       {"largest momentum error/bound", largest.momentum},
                       {"largest weight error/bound", largest.weight}};
  }
  return result;
}

}  // namespace ddproof
