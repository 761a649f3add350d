// Whole training runs on simulated ranks, for tests of the training loop.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "backends/local/os_runtime.h"
#include "backends/registry/registry.h"
#include "reference/train/train.h"
#include "tests/support/temporary_folder.h"

namespace ddproof {

// Trains on simulated ranks that share this machine's files; returns what rank 0 saw.
class World {
 public:
  explicit World(int size) : size_(size) {}

  TrainSummary train(const TrainOptions& options, const TrainData& data) {
    TrainSummary result;
    run([&](RankContext& rank) {
      const TrainSummary summary = train_rank(options, data, rank);
      if (rank.group.rank() == 0) result = summary;
    });
    return result;
  }

  // What each rank that does not train is told, by rank.
  std::map<int, std::string> refusals(const TrainOptions& options, const TrainData& data) {
    std::map<int, std::string> texts;
    run([&](RankContext& rank) {
      try {
        train_rank(options, data, rank);
      } catch (const ConfigError& error) {
        texts[rank.group.rank()] = error.what();
      }
    });
    return texts;
  }

 private:
  void run(const std::function<void(RankContext&)>& body) {
    OsRuntime machine;
    make_backend("sim")->run_world({.world_size = size_, .seed = 3, .files = &machine.files()},
                                   body);
  }

  TrainSummary train_rank(const TrainOptions& options, const TrainData& data, RankContext& rank) {
    ProcessGroup* group = size_ > 1 ? &rank.group : nullptr;
    return ddproof::train(options, data, group, rank.runtime, nullptr);
  }

  int size_;
};

inline TrainOptions small_options() {
  return {.epochs = 2, .batch_size = 4, .sgd = {.lr = 0.05, .momentum = 0.9}, .seed = 5};
}

class CheckpointFolder : public testing::Test {
 protected:
  void clear() {
    for (const std::string& name : runtime_.files().list(path_)) {
      runtime_.files().remove(path_ + "/" + name);
    }
  }

  // Three ranks that stop after any step and go on end as if they had not stopped. Returns how they
  // end.
  TrainSummary expect_exact_resumption(TrainOptions options, const TrainData& data) {
    const TrainSummary whole = World(3).train(options, data);
    options.checkpoint_directory = path_;
    options.resume = true;
    for (std::int64_t stop = 1; stop < whole.steps; ++stop) {
      clear();
      options.max_steps = stop;
      World(3).train(options, data);
      options.max_steps = 0;
      EXPECT_EQ(World(3).train(options, data).state_digest, whole.state_digest)
          << "stopped after step " << stop;
    }
    return whole;
  }

  OsRuntime runtime_;
  const TemporaryFolder folder_;
  const std::string& path_ = folder_.path();
};

}  // namespace ddproof
