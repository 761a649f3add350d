#include "properties/scenario/fault_shape.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "properties/scenario/run.h"

namespace ddproof::scenario {
namespace {

// Folder, file, writes, sync, rename, sync of the folder.
constexpr std::uint64_t kChangesPerSave = 8;

class Meter final : public sim::TraceSink {
 public:
  void on_event(const sim::Event& event) override {
    if (event.kind == sim::EventKind::kActivity) {
      shape_.operations = std::max(shape_.operations, event.value);
    } else if (event.kind == sim::EventKind::kSend) {
      shape_.message_bytes = std::max(shape_.message_bytes, event.value);
      shape_.messages = std::max(shape_.messages, ++messages_[{event.rank, event.peer}]);
    }
  }
  sim::FaultShape& shape() { return shape_; }

 private:
  sim::FaultShape shape_;
  std::map<std::pair<int, int>, std::uint64_t> messages_;
};

std::uint64_t count_saves(const Steps& steps) {
  std::uint64_t saves = 0;
  for (const Step& step : steps) {
    if (const auto* checkpoint = std::get_if<CheckpointStep>(&step.action)) {
      saves += checkpoint->save ? 1 : 0;
    } else if (const auto* repeat = std::get_if<RepeatStep>(&step.action)) {
      saves += static_cast<std::uint64_t>(repeat->times) * count_saves(repeat->steps);
    } else if (const auto* branch = std::get_if<IfStep>(&step.action)) {
      saves += std::max(count_saves(branch->then), count_saves(branch->otherwise));
    } else if (const auto* sampler = std::get_if<SamplerStep>(&step.action)) {
      saves += count_saves(sampler->each);
    }
  }
  return saves;
}

}  // namespace

sim::FaultShape measure_shape(const Scenario& scenario, std::uint64_t seed) {
  Meter meter;
  sim::RoundRobin round_robin;
  const Run run =
      run_once(scenario, {.seed = seed, .scheduler = &round_robin, .trace = &meter}, {});
  sim::FaultShape shape = meter.shape();
  shape.ranks = scenario.world_size;
  shape.duration = std::max<sim::Time>(1, run.report.virtual_time);
  for (const Program& program : scenario.programs) {
    shape.changes = std::max(shape.changes, kChangesPerSave * count_saves(program.steps));
  }
  return shape;
}

}  // namespace ddproof::scenario
