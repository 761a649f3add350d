// What talking costs 64 simulated ranks that train the MLP: the share of CPU time that ranks spend
// in calls of the group and in their waits, less what others compute meanwhile. The pass that
// scales the gradients before they are summed counts as computing. Target: less than a third.
#include <cstdio>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "backends/api/forwarding_process_group.h"
#include "backends/local/os_measure.h"
#include "backends/registry/registry.h"
#include "reference/compute/cpu.h"
#include "reference/model/models.h"
#include "reference/optim/sgd.h"
#include "reference/train/trainer.h"

namespace ddproof {
namespace {

constexpr int kRanks = 64;
constexpr int kSteps = 8;
constexpr int kRuns = 5;

// The CPU time of one rank's own work.
class Meter {
 public:
  void start() {
    total_ = 0;
    resume();
  }
  void pause() { total_ += cpu_seconds() - since_; }
  void resume() { since_ = cpu_seconds(); }
  double total() const { return total_; }

 private:
  double total_ = 0;
  double since_ = 0;
};

// Leaves out what happens between its making and its end.
struct Pause {
  explicit Pause(Meter& m) : meter(m) { meter.pause(); }
  ~Pause() { meter.resume(); }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
  Meter& meter;
};

class MeteredWork : public Work {
 public:
  MeteredWork(WorkPtr inner, Meter& meter) : inner_(std::move(inner)), meter_(meter) {}
  bool is_completed() override { return inner_->is_completed(); }
  void wait(Duration timeout) override {
    const Pause pause(meter_);
    inner_->wait(timeout);
  }
  std::exception_ptr error() override { return inner_->error(); }

 private:
  WorkPtr inner_;
  Meter& meter_;
};

class MeteredGroup : public ForwardingProcessGroup {
 public:
  MeteredGroup(ProcessGroup& inner, Meter& meter) : ForwardingProcessGroup(inner), meter_(meter) {}
  WorkPtr submit(Call&& call) override {
    const Pause pause(meter_);
    return std::make_shared<MeteredWork>(inner_.submit(std::move(call)), meter_);
  }

 private:
  Meter& meter_;
};

struct Times {
  double begin = 0;
  double end = 0;
  double compute = 0;  // of all ranks
};

void train_rank(RankContext& rank, std::int64_t batch_size, Times& times) {
  Meter meter;
  MeteredGroup group(rank.group, meter);
  Cpu<float> device;
  const auto model = make_model<float>("mlp", {1, 28, 28}, 10, device, 1);
  Sgd<float> optimizer(model->parameters(), {.lr = 0.05, .momentum = 0.9});
  Trainer<float> trainer(*model, optimizer, &group, {});
  Tensor<float> input(device, {batch_size, 1, 28, 28});
  for (std::int64_t i = 0; i < input.count(); ++i) {
    input.data()[i] = static_cast<float>((i * 37 + group.rank()) % 256) / 255.0F;
  }
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < batch_size; ++i) labels.push_back(i % 10);
  for (int step = -2; step < kSteps; ++step) {  // two to warm up: the second rebuilds the buckets
    if (step == 0) {
      group.barrier()->wait();
      if (times.begin == 0) times.begin = cpu_seconds();  // the first rank that goes on
      meter.start();
    }
    trainer.step(input, labels);
  }
  group.barrier()->wait();
  meter.pause();
  times.end = cpu_seconds();  // the last rank's stays
  times.compute += meter.total();
}

void print_row(std::int64_t batch_size) {
  std::vector<double> totals;
  std::vector<double> computes;
  std::vector<double> shares;
  for (int run = 0; run < kRuns; ++run) {
    Times times;
    make_backend("sim")->run_world({.world_size = kRanks},
                                   [&](RankContext& rank) { train_rank(rank, batch_size, times); });
    totals.push_back((times.end - times.begin) / kSteps);
    computes.push_back(times.compute / kSteps);
    shares.push_back(1 - computes.back() / totals.back());
  }
  const Summary share = summarize(shares);
  std::printf("%5lld  %10.1f  %10.1f  %5.1f %% [%.1f, %.1f]\n", static_cast<long long>(batch_size),
              summarize(computes).median * 1e3, summarize(totals).median * 1e3, share.median * 100,
              share.min * 100, share.max * 100);
}

}  // namespace
}  // namespace ddproof

int main() {
  std::printf("64 simulated ranks train the MLP; CPU ms per step of all ranks, median of 5\n");
  std::printf("batch     compute         all  share of talking [min, max], target below 33.3 %%\n");
  for (const std::int64_t batch_size : {32, 64, 128}) ddproof::print_row(batch_size);
}
