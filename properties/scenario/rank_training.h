// The model that a rank of a scenario trains: a small multilayer perceptron on generated samples,
// through the reference trainer, with momentum, so that checkpoints hold more than parameters.
//
// Threads: one task at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/api/backend.h"
#include "properties/scenario/scenario.h"
#include "reference/compute/charged_device.h"
#include "reference/compute/cpu.h"
#include "reference/model/sequential.h"
#include "reference/optim/sgd.h"
#include "reference/train/trainer.h"

namespace ddproof::scenario {

class RankTraining {
 public:
  // `rank` must outlive this. All ranks of one seed begin with the same model.
  RankTraining(RankContext& rank, std::uint64_t seed, const ComputeCost& cost);

  // One step on `batch` samples, which no other rank or step has. The first one wraps the model in
  // DistributedDataParallel. A collective call.
  void step(std::int64_t batch);

  // As CheckpointStep says; load() returns the number of steps in it.
  void save(const std::string& path, bool shared);
  std::int64_t load(const std::string& path, bool shared);

  // Of parameters and momentum.
  std::uint64_t digest() const;

 private:
  RankContext& rank_;
  std::uint64_t seed_;
  std::int64_t steps_ = 0;
  Cpu<float> cpu_;
  ChargedDevice<float> device_;
  std::unique_ptr<Module<float>> model_;
  std::unique_ptr<Sgd<float>> sgd_;
  std::unique_ptr<Trainer<float>> trainer_;
};

}  // namespace ddproof::scenario
