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

struct HostBatch {
  Tensor<float> input;
  std::vector<std::int64_t> labels;
};

// Each rank's samples of a step, as the sampler deals them out.
class Batches {
 public:
  Batches(const TrainingJob& job, int world_size) : job_(job) {
    for (int rank = 0; rank < world_size; ++rank) {
      DistributedSampler sampler(
          {.length = job.dataset.size(), .replicas = world_size, .rank = rank, .seed = job.seed});
      indices_.push_back(sampler.indices());
    }
    const std::int64_t steps = indices_[0].size() / job.batch_size;
    if (job.steps > steps) {
      throw ConfigError(fmt::format(
          "steps is {}; {} samples in batches of {} on each of {} ranks give at most {}", job.steps,
          job.dataset.size(), job.batch_size, world_size, steps));
    }
  }

  HostBatch of_rank(Device<float>& device, int step, int rank) const {
    return read(device, step, rank, 1);
  }
  // The ranks' batches one after another.
  HostBatch whole(Device<float>& device, int step) const {
    return read(device, step, 0, static_cast<int>(indices_.size()));
  }

 private:
  HostBatch read(Device<float>& device, int step, int first_rank, int ranks) const {
    Shape shape = job_.dataset.sample_shape();
    const auto values = static_cast<std::size_t>(element_count(shape));
    shape.insert(shape.begin(), ranks * job_.batch_size);
    HostBatch batch{Tensor<float>(device, std::move(shape)), {}};
    for (int rank = first_rank; rank < first_rank + ranks; ++rank) {
      for (std::int64_t i = 0; i < job_.batch_size; ++i) {
        const std::int64_t index =
            indices_[static_cast<std::size_t>(rank)][step * job_.batch_size + i];
        const auto to = batch.input.span().subspan(batch.labels.size() * values, values);
        batch.labels.push_back(job_.dataset.read(index, to));
      }
    }
    return batch;
  }

  const TrainingJob& job_;
  std::vector<IndexList> indices_;  // by rank
};

// A model with its optimizer, and the bits of its state.
struct Replica {
  Replica(Device<float>& device, const TrainingJob& job)
      : model(job.make_model(device)), optimizer(model->parameters(), job.sgd) {}

  std::uint64_t digest() const {
    std::uint64_t digest = 0;
    const auto add = [&digest](const Tensor<float>& tensor) {
      digest = digest_of(std::as_bytes(tensor.span()), digest);
    };
    for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
      add(optimizer.parameters()[i]->value);
      add(optimizer.parameters()[i]->gradient);
      if (optimizer.momentum_buffer(i)) add(*optimizer.momentum_buffer(i));
    }
    return digest;
  }

  void take_over(const Replica& other) {
    for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
      copy(other.optimizer.parameters()[i]->value, optimizer.parameters()[i]->value);
      const auto& buffer = other.optimizer.momentum_buffer(i);
      if (buffer) copy(*buffer, optimizer.make_momentum_buffer(i));
    }
  }

  static void copy(const Tensor<float>& from, Tensor<float>& to) {
    std::ranges::copy(from.span(), to.span().begin());
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

// The single device, and beside it the model whose backward gives magnitudes.
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
      const auto values = ranks.optimizer.parameters()[i]->value.span();
      const auto& buffer = ranks.optimizer.momentum_buffer(i);
      State state{{values.begin(), values.end()}, {}};
      if (buffer) state.buffer.assign(buffer->span().begin(), buffer->span().end());
      before_.push_back(std::move(state));
    }
    replica_.take_over(ranks);
    magnitudes_.take_over(ranks);
  }

  // Call with the ranks' state after their step.
  StepComparison step_and_compare(int step, const Replica& ranks) {
    const HostBatch batch = batches_.whole(cpu_, step);
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
  struct State {
    std::vector<float> value;
    std::vector<float> buffer;  // empty before the first step
  };

  void compare_parameter(std::size_t i, const Replica& ranks, Comparer& comparer,
                         StepComparison& result) {
    const Parameter<float>& theirs = *ranks.optimizer.parameters()[i];
    const Parameter<float>& ours = *replica_.optimizer.parameters()[i];
    const Tensor<float>& magnitude = magnitudes_.optimizer.parameters()[i]->gradient;
    const GradientPath path = magnitude_device_.path_to(magnitude.data());
    SgdStepMagnitudes step = settings(i);
    result.elements += ours.value.count();
    for (std::size_t j = 0; j < ours.value.span().size(); ++j) {
      const float their_gradient = theirs.gradient.span()[j];
      const float our_gradient = ours.gradient.span()[j];
      comparer.compare(result.gradient, "the gradient", ours.name, j, their_gradient, our_gradient,
                       ddp_gradient_bound(path, world_size_, magnitude.span()[j]));
      step.weight = std::abs(before_[i].value[j]);
      step.buffer = step.first_step ? 0 : std::abs(before_[i].buffer[j]);
      step.gradient = std::max(std::abs(their_gradient), std::abs(our_gradient));
      step.gradient_bound =
          std::abs(static_cast<double>(their_gradient) - static_cast<double>(our_gradient));
      if (replica_.optimizer.momentum_buffer(i)) {
        comparer.compare(result.momentum, "the momentum", ours.name, j,
                         ranks.optimizer.momentum_buffer(i)->span()[j],
                         replica_.optimizer.momentum_buffer(i)->span()[j],
                         sgd_buffer_bound(step, kFloat));
      }
      comparer.compare(result.weight, "the weight", ours.name, j, theirs.value.span()[j],
                       ours.value.span()[j], sgd_weight_bound(step, kFloat));
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

void run_rank(RankContext& rank, const TrainingJob& job, const Batches& batches,
              std::vector<StepComparison>& results, Digests& digests) {
  Cpu<float> cpu;
  Replica replica(cpu, job);
  Trainer<float> trainer(*replica.model, replica.optimizer, &rank.group, job.ddp);
  std::unique_ptr<OneDevice> alone;
  if (rank.group.rank() == 0) {
    alone = std::make_unique<OneDevice>(job, batches, rank.group.size());
  }
  for (int step = 0; step < job.steps; ++step) {
    if (alone) alone->take_over(replica);
    const HostBatch batch = batches.of_rank(cpu, step, rank.group.rank());
    trainer.step(batch.input, batch.labels);
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
            [&](RankContext& rank) { run_rank(rank, job, batches, results, digests); });
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
