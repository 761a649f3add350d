#include "simulator/replay.h"

namespace ddproof::sim {
namespace {

constexpr const char* kAdvice = "; replay it with the program, faults and options it was made with";

}  // namespace

void Replay::begin_run(std::uint64_t seed) {
  SeededScheduler::begin_run(seed);
  if (continuation_ != nullptr) continuation_->begin_run(seed);
  place_ = 0;
  decision_ = 0;
  difference_.reset();
  if (seed != schedule_.seed) {
    differ("the run has seed " + std::to_string(seed) + ", the schedule was recorded with seed " +
           std::to_string(schedule_.seed));
  }
}

std::size_t Replay::next(std::span<const Runnable> runnable) {
  const std::uint64_t decision = decision_++;
  if (decision >= schedule_.decisions) {
    return continuation_ == nullptr ? 0 : continuation_->next(runnable);
  }
  if (place_ == schedule_.choices.size()) return 0;
  const Choice& choice = schedule_.choices[place_];
  if (choice.decision != decision) return 0;
  ++place_;
  if (choice.count != runnable.size()) {
    return differ("decision " + std::to_string(decision) + " chose fiber " +
                  std::to_string(choice.index + 1) + " of " + std::to_string(choice.count) +
                  " runnable ones, now there are " + std::to_string(runnable.size()));
  }
  return difference_ ? 0 : choice.index;
}

std::size_t Replay::differ(std::string what) {
  if (!difference_) difference_ = std::move(what);
  return 0;
}

void Replay::check() const {
  if (difference_) throw ScheduleError("schedule of another run: " + *difference_ + kAdvice);
  if (decision_ >= schedule_.decisions) return;
  throw ScheduleError("schedule of another run: decision " + std::to_string(decision_) +
                      " never came, the run ended after " + std::to_string(decision_) + " of " +
                      std::to_string(schedule_.decisions) + " decisions" + kAdvice);
}

}  // namespace ddproof::sim
