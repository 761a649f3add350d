#include "properties/scenario/fault_shape.h"

#include <algorithm>
#include <map>
#include <utility>

#include "properties/scenario/run.h"

namespace ddproof::scenario {
namespace {

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

}  // namespace

sim::FaultShape measure_shape(const Scenario& scenario, std::uint64_t seed) {
  Meter meter;
  sim::RoundRobin round_robin;
  const Run run =
      run_once(scenario, {.seed = seed, .scheduler = &round_robin, .trace = &meter}, {});
  sim::FaultShape shape = meter.shape();
  shape.ranks = scenario.world_size;
  shape.duration = std::max<sim::Time>(1, run.report.virtual_time);
  for (const sim::RankReport& rank : run.report.ranks) shape.disk.push_back(rank.disk);
  return shape;
}

}  // namespace ddproof::scenario
