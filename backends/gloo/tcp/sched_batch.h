// Makes this thread SCHED_BATCH for a scope: threads that are started meanwhile inherit it and stay
// so. Such a thread runs as much as any other, but waking up it does not interrupt one that runs.
//
// Gloo's own thread must not. What wakes it is often the answer to a message whose sender still
// holds the connection's lock; Gloo's thread does not wait for that lock but asks epoll again and
// again (Pair::handleEvents in gloo/transport/tcp/pair.cc), for a whole time slice where it has
// just taken the processor from the sender. Nothing is done where the user chose another policy.
#pragma once

#include <sched.h>

namespace ddproof {

class SchedBatch {
 public:
  SchedBatch() : changed_(sched_getscheduler(0) == SCHED_OTHER && set(SCHED_BATCH)) {}
  ~SchedBatch() {
    if (changed_) set(SCHED_OTHER);
  }
  SchedBatch(const SchedBatch&) = delete;
  SchedBatch& operator=(const SchedBatch&) = delete;

 private:
  static bool set(int policy) {
    const sched_param priority{};
    return sched_setscheduler(0, policy, &priority) == 0;
  }

  bool changed_;
};

}  // namespace ddproof
