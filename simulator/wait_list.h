// The fibers that wait for one thing.
//
// Threads: those of one Simulation. Must outlive its waiters.
#pragma once

#include <algorithm>
#include <vector>

#include "simulator/simulation.h"

namespace ddproof::sim {

class WaitList {
 public:
  // To a search, all lists made so are one.
  WaitList() = default;
  explicit WaitList(Simulation& simulation) : key_(simulation.new_object()) {}

  // Simulation::wait() that wake_all() ends.
  bool wait(Simulation& simulation, const WaitReason& reason, Deadline deadline = {}) {
    simulation.touch(key_, Access::kAdd);
    const Entry entry(*this, *simulation.current());
    return simulation.wait(reason, deadline);
  }

  void wake_all(Simulation& simulation) {
    simulation.touch(key_, Access::kRead);
    for (Fiber* fiber : fibers_) simulation.wake(*fiber);
  }

  bool empty() const { return fibers_.empty(); }

 private:
  // However the wait ends, the fiber leaves the list.
  class Entry {
   public:
    Entry(WaitList& list, Fiber& fiber) : list_(list), fiber_(fiber) {
      list_.fibers_.push_back(&fiber);
    }
    ~Entry() {
      auto& fibers = list_.fibers_;
      fibers.erase(std::find(fibers.begin(), fibers.end(), &fiber_));
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    WaitList& list_;
    Fiber& fiber_;
  };

  ObjectKey key_ = kUnnamedWaitLists;
  std::vector<Fiber*> fibers_;
};

}  // namespace ddproof::sim
