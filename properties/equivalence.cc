#include "properties/equivalence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "backends/api/digest.h"
#include "backends/api/error.h"
#include "reference/compute/cpu.h"
#include "reference/data/distributed_sampler.h"
#include "reference/oracle/magnitude_device.h"
#include "reference/oracle/rounding_bound.h"
#include "reference/train/trainer.h"

namespace ddproof {
namespace {

constexpr const Precision& kFloat = kPrecisionOf<float>;

struct StepBatch {
  Tensor<float> input;
  std::vector<std::int64_t> labels;
};

// Each rank's samples of a step, as the sampler deals them out.
class Batches {
 public:
  Batches(const TrainingJob& job, int world_size) : job_(job) {
    DistributedSampler sampler(
        {.length = job.dataset.size(), .replicas = world_size, .seed = job.seed});
    indices_ = sampler.indices_of_all_ranks();
    const std::int64_t steps = indices_[0].size() / job.batch_size;
    if (job.steps > steps) {
      throw ConfigError(fmt::format(
          "steps is {}; {} samples in batches of {} on each of {} ranks give at most {}", job.steps,
          job.dataset.size(), job.batch_size, world_size, steps));
    }
  }

  // As the rank gets it: in micro-batches.
  std::vector<StepBatch> of_rank(Device<float>& device, int step, int rank) const {
    const std::vector<std::int64_t> samples = samples_of(step, rank);
    const auto all = static_cast<std::int64_t>(samples.size());
    const std::int64_t parts = std::min(job_.micro_batches, all);
    std::vector<StepBatch> result;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto begin = samples.begin() + part * all / parts;
      const auto end = samples.begin() + (part + 1) * all / parts;
      result.push_back(read(device, {begin, end}));
    }
    return result;
  }
  // The ranks' batches one after another.
  StepBatch whole(Device<float>& device, int step) const {
    std::vector<std::int64_t> samples;
    for (int rank = 0; rank < static_cast<int>(indices_.size()); ++rank) {
      const std::vector<std::int64_t> more = samples_of(step, rank);
      samples.insert(samples.end(), more.begin(), more.end());
    }
    return read(device, samples);
  }

 private:
  std::vector<std::int64_t> samples_of(int step, int rank) const {
    const std::int64_t size = job_.batch_size - (job_.uneven ? rank % job_.batch_size : 0);
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < size; ++i) {
      result.push_back(indices_[static_cast<std::size_t>(rank)][step * job_.batch_size + i]);
    }
    return result;
  }

  StepBatch read(Device<float>& device, const std::vector<std::int64_t>& samples) const {
    Shape shape = job_.dataset.sample_shape();
    const auto values = static_cast<std::size_t>(element_count(shape));
    shape.insert(shape.begin(), static_cast<std::int64_t>(samples.size()));
    StepBatch batch{Tensor<float>(device, std::move(shape)), {}};
    std::vector<float> input(static_cast<std::size_t>(batch.input.count()));
    for (std::int64_t sample : samples) {
      const auto to = std::span(input).subspan(batch.labels.size() * values, values);
      job_.dataset.read(sample, to, std::span(&batch.labels.emplace_back(), 1));
    }
    device.copy_from_host(batch.input.data(), input.data(), batch.input.count());
    return batch;
  }

  const TrainingJob& job_;
  std::vector<IndexList> indices_;  // by rank
};

// Of one parameter, in host memory.
struct State {
  std::vector<float> value;
  std::vector<float> gradient;
  std::vector<float> buffer;  // the momentum; empty before the first step
};

// A model with its optimizer on a device, and its state.
struct Replica {
  Replica(Device<float>& device, const TrainingJob& job)
      : model(job.make_model(device)), optimizer(model->parameters(), job.sgd) {}

  // Waits for the device.
  State state_of(std::size_t parameter) const {
    const Parameter<float>& it = *optimizer.parameters()[parameter];
    const std::vector<Tensor<float>>& momentum = optimizer.state()[parameter].tensors;
    return {to_host(it.value), to_host(it.gradient),
            momentum.empty() ? std::vector<float>() : to_host(momentum[0])};
  }

  std::uint64_t digest() const {
    std::uint64_t digest = 0;
    for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
      const State state = state_of(i);
      for (const auto* part : {&state.value, &state.gradient, &state.buffer}) {
        digest = digest_of(std::as_bytes(std::span(*part)), digest);
      }
    }
    return digest;
  }

  // But for the gradients.
  void set_states(const std::vector<State>& states) {
    std::vector<ParameterState<float>> momenta(states.size());
    for (std::size_t i = 0; i < states.size(); ++i) {
      Tensor<float>& value = optimizer.parameters()[i]->value;
      set(value, states[i].value);
      if (states[i].buffer.empty()) continue;
      set(momenta[i].tensors.emplace_back(value.device(), value.shape()), states[i].buffer);
    }
    optimizer.load_state(std::move(momenta));
  }

  static void set(Tensor<float>& tensor, const std::vector<float>& values) {
    tensor.device().copy_from_host(tensor.data(), values.data(), tensor.count());
  }

  std::unique_ptr<Module<float>> model;
  Sgd<float> optimizer;
};

// Keeps the largest ratio and the first element that is out of bounds.
class Comparer {
 public:
  Comparer(StepComparison& result, int step, int world_size)
      : result_(result), step_(step), world_size_(world_size) {}

  void compare(double& largest, const char* kind, const std::string& name, std::size_t index,
               float ranks, float alone, double bound) {
    const double difference = std::abs(static_cast<double>(ranks) - static_cast<double>(alone));
    const double ratio = difference == 0 ? 0 : difference / bound;
    if (ratio > largest || std::isnan(ratio)) largest = ratio;
    if (ratio <= 1 || !result_.wrong.empty()) return;
    result_.wrong = fmt::format(
        "step {}: {} of {}[{}] is {:.9g} on {} ranks and {:.9g} on one device: the difference is "
        "{:.3g} times what rounding allows ({:.3g})",
        step_, kind, name, index, ranks, world_size_, alone, ratio, bound);
  }

 private:
  StepComparison& result_;
  int step_;
  int world_size_;
};

// The single CPU, and beside it the model whose backward gives magnitudes.
class OneDevice {
 public:
  OneDevice(const TrainingJob& job, const Batches& batches, int world_size)
      : job_(job),
        batches_(batches),
        world_size_(world_size),
        replica_(cpu_, job),
        trainer_(*replica_.model, replica_.optimizer, nullptr, {}),
        magnitude_device_(cpu_),
        magnitudes_(magnitude_device_, job) {}

  // Call with the ranks' state before their step.
  void take_over(const Replica& ranks) {
    before_.clear();
    for (std::size_t i = 0; i < ranks.optimizer.parameters().size(); ++i) {
      before_.push_back(ranks.state_of(i));
    }
    replica_.set_states(before_);
    magnitudes_.set_states(before_);
  }

  // Call with the ranks' state after their step.
  StepComparison step_and_compare(int step, const Replica& ranks) {
    const StepBatch batch = batches_.whole(cpu_, step);
    trainer_.step(batch.input, batch.labels);
    zero_grad(*magnitudes_.model);
    SoftmaxCrossEntropy<float> loss;
    loss.forward(magnitudes_.model->forward(batch.input), batch.labels);
    magnitudes_.model->backward(loss.backward(), {});
    StepComparison result;
    Comparer comparer(result, step, world_size_);
    for (std::size_t i = 0; i < before_.size(); ++i) compare_parameter(i, ranks, comparer, result);
    return result;
  }

 private:
  void compare_parameter(std::size_t i, const Replica& ranks, Comparer& comparer,
                         StepComparison& result) {
    const State theirs = ranks.state_of(i);
    const State ours = replica_.state_of(i);
    const Parameter<float>& parameter = *replica_.optimizer.parameters()[i];
    const Tensor<float>& magnitude = magnitudes_.optimizer.parameters()[i]->gradient;
    const GradientPath path = magnitude_device_.path_to(magnitude.data());
    SgdStepMagnitudes step = settings(i);
    result.elements += parameter.value.count();
    for (std::size_t j = 0; j < ours.value.size(); ++j) {
      comparer.compare(result.gradient, "the gradient", parameter.name, j, theirs.gradient[j],
                       ours.gradient[j],
                       ddp_gradient_bound(path, world_size_, magnitude.span()[j]));
      step.weight = std::abs(before_[i].value[j]);
      step.buffer = step.first_step ? 0 : std::abs(before_[i].buffer[j]);
      step.gradient = std::max(std::abs(theirs.gradient[j]), std::abs(ours.gradient[j]));
      step.gradient_bound =
          std::abs(static_cast<double>(theirs.gradient[j]) - static_cast<double>(ours.gradient[j]));
      if (!ours.buffer.empty()) {
        comparer.compare(result.momentum, "the momentum", parameter.name, j, theirs.buffer[j],
                         ours.buffer[j], sgd_buffer_bound(step, kFloat));
      }
      comparer.compare(result.weight, "the weight", parameter.name, j, theirs.value[j],
                       ours.value[j], sgd_weight_bound(step, kFloat));
    }
  }

  // As the optimizer rounds them.
  SgdStepMagnitudes settings(std::size_t parameter) const {
    return {.lr = static_cast<float>(job_.sgd.lr),
            .momentum = static_cast<float>(job_.sgd.momentum),
            .dampening = job_.sgd.dampening,
            .weight_decay = static_cast<float>(job_.sgd.weight_decay),
            .nesterov = job_.sgd.nesterov,
            .first_step = job_.sgd.momentum == 0 || before_[parameter].buffer.empty()};
  }

  const TrainingJob& job_;
  const Batches& batches_;
  int world_size_;
  Cpu<float> cpu_;
  Replica replica_;
  Trainer<float> trainer_;
  MagnitudeDevice magnitude_device_;
  Replica magnitudes_;
  std::vector<State> before_;  // by parameter
};

// By step, then by rank.
using Digests = std::vector<std::vector<std::uint64_t>>;

void run_rank(const PropertyWorld& world, RankContext& rank, const TrainingJob& job,
              const Batches& batches, std::vector<StepComparison>& results, Digests& digests) {
  const std::unique_ptr<Device<float>> device =
      world.make_device ? world.make_device(rank.group.rank()) : std::make_unique<Cpu<float>>();
  Replica replica(*device, job);
  Trainer<float> trainer(*replica.model, replica.optimizer, &rank.group, job.ddp);
  std::unique_ptr<OneDevice> alone;
  if (rank.group.rank() == 0) {
    alone = std::make_unique<OneDevice>(job, batches, rank.group.size());
  }
  for (int step = 0; step < job.steps; ++step) {
    if (alone) alone->take_over(replica);
    const auto parts = batches.of_rank(*device, step, rank.group.rank());
    const auto count = static_cast<std::int64_t>(parts.size());
    for (std::int64_t index = 0; index < count; ++index) {
      const StepBatch& part = parts[static_cast<std::size_t>(index)];
      trainer.step(part.input, part.labels, {index, count});
    }
    const auto at = static_cast<std::size_t>(step);
    digests[at][static_cast<std::size_t>(rank.group.rank())] = replica.digest();
    if (alone) results[at] = alone->step_and_compare(step, replica);
  }
}

}  // namespace

std::vector<StepComparison> compare_with_one_device(const PropertyWorld& world, int world_size,
                                                    const TrainingJob& job) {
  const Batches batches(job, world_size);
  const auto steps = static_cast<std::size_t>(job.steps);
  std::vector<StepComparison> results(steps);
  Digests digests(steps, std::vector<std::uint64_t>(static_cast<std::size_t>(world_size)));
  run_ranks(world, world_size, job.seed, Checked::kYes,
            [&](RankContext& rank) { run_rank(world, rank, job, batches, results, digests); });
  for (std::size_t step = 0; step < steps; ++step) {
    const auto& of_step = digests[step];
    const auto other =
        std::ranges::find_if(of_step, [&](std::uint64_t digest) { return digest != of_step[0]; });
    results[step].ranks_identical = other == of_step.end();
    if (results[step].wrong.empty() && !results[step].ranks_identical) {
      results[step].wrong = fmt::format("step {}: rank {} of {} holds other bits than rank 0", step,
                                        other - of_step.begin(), world_size);
    }
  }
  return results;
}

}  // namespace ddproof
