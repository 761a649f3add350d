// The loader's workers, in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "backends/registry/registry.h"
#include "reference/data/batch_reader.h"

namespace ddproof {
namespace {

// Sample i takes 1 + 2 i mod 5 seconds to read.
class SlowDataset final : public Dataset {
 public:
  SlowDataset(Runtime& runtime, bool alike) : runtime_(runtime), alike_(alike) {}
  std::int64_t size() const override { return 12; }
  const Shape& sample_shape() const override { return shape_; }
  int class_count() const override { return 12; }
  std::uint64_t digest() const override { return 0; }
  void read(std::int64_t index, std::span<float> values,
            std::span<std::int64_t> labels) const override {
    runtime_.sleep_for(std::chrono::seconds(alike_ ? 1 : 1 + 2 * index % 5));
    values[0] = 0;
    labels[0] = index;
  }

 private:
  Runtime& runtime_;
  bool alike_;
  Shape shape_{1};
};

void on_one_simulated_rank(const std::function<void(Runtime&)>& body) {
  make_backend("sim")->run_world({.world_size = 1, .seed = 1},
                                 [&](RankContext& rank) { body(rank.runtime); });
}

std::vector<std::int64_t> labels_of(Runtime& runtime, const Dataset& data, int workers) {
  BatchReader reader(runtime, data,
                     IndexList(IndexList::Narrow{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
                     {.batch_size = 2, .workers = workers});
  std::vector<std::int64_t> labels;
  for (HostBatch batch; reader.next(batch);) {
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return labels;
}

TEST(LoaderWorkers, ReadSideBySide) {
  on_one_simulated_rank([](Runtime& runtime) {
    const SlowDataset data(runtime, true);
    for (const int workers : {0, 1, 2, 3, 6}) {
      const TimePoint begin = runtime.now();
      EXPECT_EQ(labels_of(runtime, data, workers).size(), 12u);
      EXPECT_EQ(runtime.now() - begin, std::chrono::seconds(12 / std::max(workers, 1))) << workers;
    }
  });
}

TEST(LoaderWorkers, ABatchThatIsReadyEarlyWaitsForItsTurn) {
  on_one_simulated_rank([](Runtime& runtime) {
    const SlowDataset data(runtime, false);
    const std::vector<std::int64_t> plain = labels_of(runtime, data, 0);
    for (const int workers : {2, 3, 5}) EXPECT_EQ(labels_of(runtime, data, workers), plain);
  });
}

}  // namespace
}  // namespace ddproof
