// The fibers that could run now, as one span for the Scheduler, with removal in O(1).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "simulator/scheduler.h"

namespace ddproof::sim {

class RunQueue {
 public:
  bool empty() const { return first_ == entries_.size(); }
  std::span<const Runnable> entries() const { return std::span(entries_).subspan(first_); }
  void push(const Runnable& runnable) { entries_.push_back(runnable); }

  // Removes and returns entries()[index]; the first entry takes its place. Taking always index 0 is
  // first come, first served.
  Runnable take(std::size_t index) {
    const Runnable taken = entries_[first_ + index];
    entries_[first_ + index] = entries_[first_];
    if (++first_ == entries_.size()) {
      entries_.clear();
      first_ = 0;
    } else if (first_ > kCompactAt && 2 * first_ > entries_.size()) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return taken;
  }

 private:
  static constexpr std::size_t kCompactAt = 1024;
  std::vector<Runnable> entries_;
  std::size_t first_ = 0;
};

}  // namespace ddproof::sim
