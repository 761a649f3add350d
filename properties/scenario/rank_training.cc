#include "properties/scenario/rank_training.h"

#include <optional>
#include <utility>
#include <vector>

#include "backends/api/error.h"
#include "reference/checkpoint/checkpoint_directory.h"
#include "reference/checkpoint/training_state.h"
#include "reference/oracle/exact_inputs.h"
#include "reference/train/shared_checkpoint.h"
#include "reference/train/state_digest.h"

namespace ddproof::scenario {
namespace {

// Uniform in [-1, 1), a function of the three numbers.
float sample_value(std::uint64_t seed, std::uint64_t sample, std::uint64_t place) {
  return static_cast<float>(mixed_bits(seed, sample, place) >> 40) * 0x1p-23f - 1;
}

}  // namespace

RankTraining::RankTraining(RankContext& rank, std::uint64_t seed, const Scenario& scenario)
    : rank_(rank),
      seed_(seed),
      options_(scenario.training),
      device_(cpu_, rank.runtime, scenario.compute),
      model_(device_, seed),
      sgd_(model_.parameters(), SgdOptions{.lr = 0.1, .momentum = options_.momentum}) {}

DistributedDataParallel<float>& RankTraining::wrapped() {
  if (!trainer_) {
    const DdpOptions options{.find_unused_parameters = options_.find_unused_parameters};
    trainer_ = std::make_unique<Trainer<float>>(model_, sgd_, &rank_.group, options);
  }
  return *trainer_->ddp();
}

void RankTraining::run(const TrainStep& train, std::int64_t batch_size) {
  DistributedDataParallel<float>& ddp = wrapped();
  model_.set_first_layer_unused(train.unused_parameters);
  if (train.batches.empty()) return step(batch_size);
  const JoinOptions join{.enable = train.join,
                         .throw_on_early_termination = train.throw_on_early_termination};
  ddp.join(join, [&] {
    for (const std::int64_t batch : train.batches) step(batch);
  });
}

void RankTraining::step(std::int64_t batch) {
  const std::uint64_t first = static_cast<std::uint64_t>(rank_.group.rank()) << 48 |
                              static_cast<std::uint64_t>(steps_) << 16;
  std::vector<float> values;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::uint64_t sample = first + static_cast<std::uint64_t>(i);
    for (std::uint64_t place = 0; place < SmallMlp::kFeatures; ++place) {
      values.push_back(sample_value(seed_, sample, place));
    }
    labels.push_back(static_cast<std::int64_t>(mixed_bits(seed_, sample, SmallMlp::kFeatures) %
                                               SmallMlp::kClasses));
  }
  Tensor<float> input(device_, {batch, SmallMlp::kFeatures});
  device_.copy_from_host(input.data(), values.data(), input.count());
  trainer_->step(input, labels);
  ++steps_;
}

void RankTraining::save(const std::string& path, bool shared) {
  CheckpointDirectory directory(rank_.runtime, path);
  std::vector<std::byte> state;
  if (!shared || rank_.group.rank() == 0) {
    state = encode_state({.step = steps_, .seed = seed_}, sgd_);
  }
  if (shared) {
    save_shared(directory, state, &rank_.group);
  } else {
    directory.save(state);
  }
}

std::int64_t RankTraining::load(const std::string& path, bool shared) {
  const CheckpointDirectory directory(rank_.runtime, path);
  const std::optional<LoadedCheckpoint> loaded =
      shared ? load_shared(directory, &rank_.group) : std::optional(directory.load());
  if (!loaded) throw DataError(path + ": load: there is no checkpoint");
  steps_ = restore_state(loaded->path, loaded->bytes, sgd_).step;
  return steps_;
}

std::uint64_t RankTraining::digest() const { return state_digest(sgd_); }

}  // namespace ddproof::scenario
