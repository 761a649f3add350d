// Where faults enter: an interface that a run asks at each message and at each operation of a rank.
// Without one, everything is delivered and everybody lives.
//
// Threads: called on the thread of the run that it was given to.
#pragma once

#include <cstdint>

#include "simulator/time.h"

namespace ddproof::sim {

// What happens to one message.
struct MessageFate {
  bool drop = false;  // it never arrives
  Time delay = 0;     // added to its travel time; messages of one channel stay in order
};

// What happens to a rank as it begins an operation.
enum class RankFate : std::uint8_t {
  kLives,
  kCrashes,  // its fibers unwind and its connections break
  kHangs,    // it never runs again, and nobody is told
};

class FaultHook {
 public:
  virtual ~FaultHook() = default;
  // `number` counts the messages that `from` has sent: 1, 2, ...
  virtual MessageFate on_message(int from, int to, std::uint64_t bytes, std::uint64_t number) {
    (void)from, (void)to, (void)bytes, (void)number;
    return {};
  }
  // `number` counts the operations of `rank`: 1, 2, ...
  virtual RankFate on_operation(int rank, std::uint64_t number) {
    (void)rank, (void)number;
    return RankFate::kLives;
  }
};

}  // namespace ddproof::sim
