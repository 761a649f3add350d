#include "simulator/timer_heap.h"

#include "simulator/check.h"

namespace ddproof::sim {

void TimerHeap::set(Fiber& fiber, Time time, std::uint64_t sequence) {
  SIM_CHECK(!has(fiber));
  heap_.push_back({});
  sift_up(heap_.size() - 1, {time, sequence, &fiber});
}

void TimerHeap::remove(Fiber& fiber) {
  SIM_CHECK(has(fiber));
  const std::size_t index = fiber.*place_ - 1;
  fiber.*place_ = 0;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  if (index > 0 && earlier(last, heap_[(index - 1) / 2])) {
    sift_up(index, last);
  } else {
    sift_down(index, last);
  }
}

void TimerHeap::place(std::size_t index, const Entry& entry) {
  heap_[index] = entry;
  entry.fiber->*place_ = index + 1;
}

void TimerHeap::sift_up(std::size_t index, const Entry& entry) {
  while (index > 0 && earlier(entry, heap_[(index - 1) / 2])) {
    place(index, heap_[(index - 1) / 2]);
    index = (index - 1) / 2;
  }
  place(index, entry);
}

void TimerHeap::sift_down(std::size_t index, const Entry& entry) {
  while (true) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && earlier(heap_[child + 1], heap_[child])) ++child;
    if (!earlier(heap_[child], entry)) break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, entry);
}

}  // namespace ddproof::sim
