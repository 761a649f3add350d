// Every sequence of choices of a program, one run each, without any reduction: what searches are
// checked against.
//
//   EveryOrder orders;
//   do { run the program once with `orders` as its scheduler } while (orders.advance());
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/scheduler.h"

namespace ddproof::test {

class EveryOrder final : public sim::Scheduler {
 public:
  void begin_run(std::uint64_t seed) override {
    bits_ = sim::SplitMix64(seed);
    depth_ = 0;
  }
  std::size_t next(std::span<const sim::Runnable> runnable) override {
    if (depth_ == choices_.size()) choices_.push_back({0, runnable.size()});
    return choices_[depth_++].index;
  }
  std::uint64_t next_u64() override { return bits_.next(); }

  // The decisions of the latest run.
  std::uint64_t decisions() const { return depth_; }
  // The probability of the latest run when every runnable fiber is equally likely.
  double probability() const {
    double result = 1;
    for (const Choice& choice : choices_) result /= static_cast<double>(choice.count);
    return result;
  }
  // False when all have been run.
  bool advance() {
    while (!choices_.empty() && choices_.back().index + 1 == choices_.back().count) {
      choices_.pop_back();
    }
    if (choices_.empty()) return false;
    ++choices_.back().index;
    return true;
  }

 private:
  struct Choice {
    std::size_t index;
    std::size_t count;
  };
  sim::SplitMix64 bits_{0};
  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
};

}  // namespace ddproof::test
