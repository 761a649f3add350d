#include "simulator/pct.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace ddproof::sim {
namespace {

constexpr std::uint64_t kDrawn = std::uint64_t{1} << 63;  // above all priorities of changes

}  // namespace

Pct::Pct(int depth, std::uint64_t steps) : steps_(steps) {
  if (depth < 1 || steps < 1) {
    throw std::invalid_argument("PCT needs a depth and a number of steps of at least 1, got " +
                                std::to_string(depth) + " and " + std::to_string(steps));
  }
  change_at_.resize(static_cast<std::size_t>(depth) - 1);
}

void Pct::begin_run(std::uint64_t seed) {
  SeededScheduler::begin_run(seed);
  for (std::uint64_t& decision : change_at_) decision = 1 + below(random(), steps_);
  priorities_.clear();
  decisions_ = 0;
}

std::size_t Pct::next(std::span<const Runnable> runnable) {
  ++decisions_;
  std::size_t index = highest(runnable);
  for (std::size_t i = 0; i < change_at_.size(); ++i) {
    if (change_at_[i] != decisions_) continue;
    priority_of(runnable[index].id) = i + 1;
    index = highest(runnable);
  }
  return index;
}

std::size_t Pct::highest(std::span<const Runnable> runnable) {
  std::size_t best = 0;
  std::uint64_t best_priority = priority_of(runnable[0].id);
  for (std::size_t i = 1; i < runnable.size(); ++i) {
    const std::uint64_t priority = priority_of(runnable[i].id);
    if (priority <= best_priority) continue;
    best = i;
    best_priority = priority;
  }
  return best;
}

std::uint64_t& Pct::priority_of(std::uint64_t fiber) {
  if (fiber >= priorities_.size()) priorities_.resize(fiber + 1);
  std::uint64_t& priority = priorities_[fiber];
  if (priority == 0) priority = random() | kDrawn;
  return priority;
}

double pct_bound(std::uint64_t fibers, std::uint64_t steps, int depth) {
  return 1 / (static_cast<double>(fibers) * std::pow(static_cast<double>(steps), depth - 1));
}

double miss_probability(double bound, std::uint64_t runs) {
  return std::exp(static_cast<double>(runs) * std::log1p(-bound));
}

}  // namespace ddproof::sim
