// The deadlines of waiting fibers, at most one per fiber, removable when the wait ends early: a run
// with 30-minute timeouts must not collect millions of deadlines that never come.
//
// A binary heap in which each fiber knows its place. Setting a deadline later than all others,
// the usual case, is O(1); removing one is O(log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/fiber.h"
#include "simulator/time.h"

namespace ddproof::sim {

class TimerHeap {
 public:
  struct Entry {
    Time time;
    std::uint64_t sequence;
    Fiber* fiber;
  };

  // `place` is where a fiber keeps its place in this heap, plus one; 0: none.
  explicit TimerHeap(std::size_t Fiber::*place) : place_(place) {}

  bool empty() const { return heap_.empty(); }
  // Requires: not empty.
  const Entry& first() const { return heap_.front(); }
  bool has(const Fiber& fiber) const { return fiber.*place_ != 0; }
  // Requires: has(fiber).
  Time time_of(const Fiber& fiber) const { return heap_[fiber.*place_ - 1].time; }
  // Requires: !has(fiber).
  void set(Fiber& fiber, Time time, std::uint64_t sequence);
  // Requires: has(fiber).
  void remove(Fiber& fiber);

 private:
  static bool earlier(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.sequence < b.sequence;
  }
  void place(std::size_t index, const Entry& entry);
  void sift_up(std::size_t index, const Entry& entry);
  void sift_down(std::size_t index, const Entry& entry);

  std::size_t Fiber::*place_;
  std::vector<Entry> heap_;
};

}  // namespace ddproof::sim
