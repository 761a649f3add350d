// What will happen: actions ordered by (time, sequence number). Sequence numbers are unique, so
// there are no ties, and equal times run in the order in which they were scheduled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/time.h"

namespace ddproof::sim {

// A call to make later; plain data, so that millions of them cost no allocation.
struct Action {
  void (*run)(void* target, std::uint64_t argument);
  void* target;
  std::uint64_t argument;
};

// action_of<&Class::method>(object, argument): calls object.method(argument).
template <auto Method, class Class>
Action action_of(Class& object, std::uint64_t argument = 0) {
  return {[](void* target, std::uint64_t value) { (static_cast<Class*>(target)->*Method)(value); },
          &object, argument};
}

class EventQueue {
 public:
  struct Entry {
    Time time;
    std::uint64_t sequence;
    Action action;
  };

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  // In no order.
  std::span<const Entry> entries() const { return heap_; }
  // Requires: not empty.
  const Entry& first() const { return heap_.front(); }

  void push(const Entry& entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), Later{});
  }

  Entry pop() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Entry entry = heap_.back();
    heap_.pop_back();
    return entry;
  }

 private:
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
    }
  };
  std::vector<Entry> heap_;
};

}  // namespace ddproof::sim
