#include "simulator/shrink_schedule.h"

#include <algorithm>
#include <utility>

#include "simulator/recorder.h"

namespace ddproof::sim {
namespace {

// The choices that are left, where they can still be made.
class Attempt final : public SeededScheduler {
 public:
  explicit Attempt(const std::vector<Choice>& choices) : choices_(choices) {}
  void begin_run(std::uint64_t seed) override {
    SeededScheduler::begin_run(seed);
    decision_ = 0;
    place_ = 0;
  }
  std::size_t next(std::span<const Runnable> runnable) override {
    const std::uint64_t decision = decision_++;
    if (place_ == choices_.size() || choices_[place_].decision != decision) return 0;
    const std::uint64_t index = choices_[place_++].index;
    return index < runnable.size() ? index : 0;
  }

 private:
  const std::vector<Choice>& choices_;
  std::uint64_t decision_ = 0;
  std::size_t place_ = 0;
};

}  // namespace

Schedule shrink_schedule(const Program& program, Schedule schedule, const std::string& failure,
                         std::uint64_t runs_max) {
  std::size_t part = std::max<std::size_t>(1, schedule.choices.size());
  std::size_t begin = 0;
  while (runs_max > 0 && !schedule.choices.empty()) {
    if (begin >= schedule.choices.size()) {
      if (part == 1) break;
      part /= 2;
      begin = 0;
      continue;
    }
    std::vector<Choice> fewer = schedule.choices;
    const auto first = fewer.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::size_t count = std::min(part, fewer.size() - begin);
    fewer.erase(first, first + static_cast<std::ptrdiff_t>(count));
    Attempt attempt(fewer);
    Recorder recorder(attempt);
    --runs_max;
    const bool fails = program({.seed = schedule.seed, .scheduler = &recorder}).failure == failure;
    if (fails && recorder.schedule().choices.size() < schedule.choices.size()) {
      schedule = recorder.schedule();  // later choices may have become impossible
      part = std::min(part, std::max<std::size_t>(1, schedule.choices.size()));
      if (part == 1) begin = 0;
    } else {
      begin += count;
    }
  }
  return schedule;
}

}  // namespace ddproof::sim
