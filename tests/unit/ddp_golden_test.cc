// Twenty steps of DDP training at world sizes 1, 2 and 4 against PyTorch 1.13.1
// (tests/golden/ddp.json), on every backend that can make such a world.
//
// The allowance comes from the run itself: training in float and in double from the same numbers
// shows how far rounding carries a quantity in these 20 steps. Rounding errors grow alike in both
// precisions, in proportion to the unit roundoff (ORACLES section 2), so PyTorch's double results
// must be 2^29 times closer than that, and its float results as close, up to kOrders: the two
// libraries add in different orders. The recorded sums themselves (norms, mean losses) are rounded
// too, on both sides: two runs of one sum of positive terms, bounded as such.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"
#include "reference/data/distributed_sampler.h"
#include "reference/model/activation.h"
#include "reference/model/linear.h"
#include "reference/model/sequential.h"
#include "reference/optim/sgd.h"
#include "reference/oracle/rounding_bound.h"
#include "reference/train/trainer.h"
#include "tests/support/lcg.h"

namespace ddproof {
namespace {

using nlohmann::json;

constexpr double kOrders = 16;
constexpr int kSteps = 20;
constexpr std::int64_t kSamples = 256;
constexpr std::int64_t kFeatures = 32;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kGlobalBatch = 64;

struct Samples {
  std::vector<double> features;  // [kSamples][kFeatures]
  std::vector<std::int64_t> labels;
};

Samples make_samples() {
  Samples samples;
  Lcg lcg(777);
  for (std::int64_t i = 0; i < kSamples; ++i) {
    for (std::int64_t f = 0; f < kFeatures; ++f) samples.features.push_back(lcg.unit());
    samples.labels.push_back(lcg.draw() % kClasses);
  }
  return samples;
}

template <class T>
std::unique_ptr<Module<T>> make_golden_model(Device<T>& device) {
  std::vector<std::unique_ptr<Module<T>>> layers;
  layers.push_back(std::make_unique<Linear<T>>(device, "fc1", kFeatures, 64, 0));
  layers.push_back(std::make_unique<ReLU<T>>(device));
  layers.push_back(std::make_unique<Linear<T>>(device, "fc2", 64, 64, 0));
  layers.push_back(std::make_unique<ReLU<T>>(device));
  layers.push_back(std::make_unique<Linear<T>>(device, "fc3", 64, kClasses, 0));
  auto model = std::make_unique<Sequential<T>>(std::move(layers));
  Lcg lcg(12345);
  for (Parameter<T>* parameter : model->parameters()) {
    for (T& value : parameter->value.span()) {
      value = static_cast<T>(lcg.unit() / 8);
    }
  }
  return model;
}

// What the golden file records of a run, in the same units.
struct Record {
  std::vector<double> losses;      // [step][rank]
  std::vector<double> grad_norms;  // [step]
  std::vector<double> weights_l2;  // [step]
  std::vector<double> weights;     // the first four of each parameter, at the end
};

template <class T>
double norm(const std::vector<Parameter<T>*>& parameters, Tensor<T> Parameter<T>::*member) {
  double sum = 0;
  for (Parameter<T>* parameter : parameters) {
    for (const T value : (parameter->*member).span()) sum += static_cast<double>(value) * value;
  }
  return std::sqrt(sum);
}

// Trains this rank and writes into `record` what it saw; ranks write to places of their own.
template <class T>
void train_golden(ProcessGroup* group, const SgdOptions& sgd, const Samples& samples,
                  Record& record) {
  const int world = group != nullptr ? group->size() : 1;
  const int rank = group != nullptr ? group->rank() : 0;
  Cpu<T> device;
  const auto model = make_golden_model<T>(device);
  Sgd<T> optimizer(model->parameters(), sgd);
  Trainer<T> trainer(*model, optimizer, group, {});
  const std::int64_t batch = kGlobalBatch / world;
  DistributedSampler sampler({.length = kSamples, .replicas = world, .rank = rank});
  for (int step = 0; step < kSteps; ++step) {
    const std::int64_t in_epoch = step % (kSamples / kGlobalBatch);
    sampler.set_epoch(step / (kSamples / kGlobalBatch));
    const IndexList indices = sampler.indices(in_epoch * kGlobalBatch);
    Tensor<T> input(device, {batch, kFeatures});
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < batch; ++i) {
      labels.push_back(samples.labels[static_cast<std::size_t>(indices[i])]);
      for (std::int64_t f = 0; f < kFeatures; ++f) {
        input.data()[i * kFeatures + f] =
            static_cast<T>(samples.features[static_cast<std::size_t>(indices[i] * kFeatures + f)]);
      }
    }
    const MetricSums sums = trainer.step(input, labels);
    const auto at = static_cast<std::size_t>(step);
    record.losses[at * static_cast<std::size_t>(world) + static_cast<std::size_t>(rank)] =
        sums.loss();
    if (rank != 0) continue;
    record.grad_norms[at] = norm(model->parameters(), &Parameter<T>::gradient);
    record.weights_l2[at] = norm(model->parameters(), &Parameter<T>::value);
  }
  if (rank != 0) return;
  for (Parameter<T>* parameter : model->parameters()) {
    for (std::size_t i = 0; i < 4; ++i) {
      record.weights.push_back(static_cast<double>(parameter->value.span()[i]));
    }
  }
}

template <class T>
Record run_golden(const std::string& backend, int world, const SgdOptions& sgd) {
  const Samples samples = make_samples();
  Record record;
  record.losses.resize(static_cast<std::size_t>(kSteps * world));
  record.grad_norms.resize(kSteps);
  record.weights_l2.resize(kSteps);
  if (backend == "none") {
    train_golden<T>(nullptr, sgd, samples, record);
    return record;
  }
  make_backend(backend)->run_world({.world_size = world, .seed = 1}, [&](RankContext& rank) {
    train_golden<T>(&rank.group, sgd, samples, record);
  });
  return record;
}

Record read_record(const json& run) {
  Record record;
  for (const json& step : run["loss_per_rank"]) {
    for (const json& loss : step) record.losses.push_back(loss);
  }
  record.grad_norms = run["grad_norm"].get<std::vector<double>>();
  record.weights_l2 = run["weights_l2"].get<std::vector<double>>();
  for (const json& first : run["final"]["first4"]) {
    for (const json& value : first) record.weights.push_back(value);
  }
  return record;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// `terms`: how many numbers are added to make one of the compared ones.
void expect_close(const char* what, const std::vector<double>& golden,
                  const std::vector<double>& in_double, const std::vector<double>& in_float,
                  std::int64_t terms, const Precision& precision) {
  ASSERT_EQ(golden.size(), in_double.size()) << what;
  const double rounding = largest_difference(in_float, in_double);
  EXPECT_GT(rounding, 0.0) << what << ": the float run shows no rounding";
  const double largest = *std::ranges::max_element(golden);
  const double allowed =
      kOrders * rounding * precision.unit_roundoff / kPrecisionOf<float>.unit_roundoff +
      two_sums_bound(terms, terms, precision, largest);
  EXPECT_LE(largest_difference(golden, in_double), allowed) << what;
}

SgdOptions read_options(const json& opt) {
  return {.lr = opt["lr"],
          .momentum = opt.value("momentum", 0.0),
          .weight_decay = opt.value("weight_decay", 0.0),
          .nesterov = opt.value("nesterov", false)};
}

class DdpGolden : public testing::TestWithParam<std::string> {};

TEST_P(DdpGolden, TwentyStepsEqualPyTorchsUpToRounding) {
  std::ifstream file(std::string(DDPROOF_SOURCE_DIR) + "/tests/golden/ddp.json");
  const json golden_file = json::parse(file);
  int compared = 0;
  for (const json& run : golden_file["runs"]) {
    if (run["ddp"].get<bool>() == (GetParam() == "none")) continue;
    const int world = run["world"];
    SCOPED_TRACE(testing::Message() << run["dtype"] << " world " << world << " " << run["opt"]);
    const SgdOptions sgd = read_options(run["opt"]);
    const Record golden = read_record(run);
    const Record in_double = run_golden<double>(GetParam(), world, sgd);
    const Record in_float = run_golden<float>(GetParam(), world, sgd);
    const Precision& precision =
        run["dtype"] == "float64" ? kPrecisionOf<double> : kPrecisionOf<float>;
    const std::int64_t parameters = run["final"]["n"];
    expect_close("loss", golden.losses, in_double.losses, in_float.losses, kGlobalBatch / world,
                 precision);
    expect_close("grad norm", golden.grad_norms, in_double.grad_norms, in_float.grad_norms,
                 parameters, precision);
    expect_close("|w|", golden.weights_l2, in_double.weights_l2, in_float.weights_l2, parameters,
                 precision);
    expect_close("weights", golden.weights, in_double.weights, in_float.weights, 1, precision);
    ++compared;
  }
  EXPECT_EQ(compared, GetParam() == "none" ? 6 : 18);
}

INSTANTIATE_TEST_SUITE_P(AllBackends, DdpGolden, testing::Values("none", "sim", "gloo"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ddproof
