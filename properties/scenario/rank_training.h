// What a rank of a scenario trains: a small multilayer perceptron on generated samples, through the
// reference trainer.
//
// Threads: one task at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/api/backend.h"
#include "properties/scenario/scenario.h"
#include "properties/scenario/small_mlp.h"
#include "reference/compute/charged_device.h"
#include "reference/compute/cpu.h"
#include "reference/optim/sgd.h"
#include "reference/train/trainer.h"

namespace ddproof::scenario {

class RankTraining {
 public:
  // `rank` and `scenario` must outlive this. All ranks of one seed begin with the same model.
  RankTraining(RankContext& rank, std::uint64_t seed, const Scenario& scenario);

  // The steps of `train`; without batches, one of `batch_size`. No other rank or step has the same
  // samples. The first one wraps the model in DistributedDataParallel. A collective call.
  void run(const TrainStep& train, std::int64_t batch_size);

  // As CheckpointStep says; load() returns the number of steps in it.
  void save(const std::string& path, bool shared);
  std::int64_t load(const std::string& path, bool shared);

  // Of parameters and momentum.
  std::uint64_t digest() const;

 private:
  DistributedDataParallel<float>& wrapped();
  void step(std::int64_t batch);

  RankContext& rank_;
  std::uint64_t seed_;
  const TrainingOptions& options_;
  std::int64_t steps_ = 0;
  Cpu<float> cpu_;
  ChargedDevice<float> device_;
  SmallMlp model_;
  Sgd<float> sgd_;
  std::unique_ptr<Trainer<float>> trainer_;
};

}  // namespace ddproof::scenario
