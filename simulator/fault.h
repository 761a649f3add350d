// Where faults enter: an interface that a run asks at each message, operation, sleep and disk call
// of a rank. Without one, everything is delivered, everybody lives and the disk works. FaultPlan
// (fault_plan.h) is the usual source; PlanFaults (plan_faults.h) makes it a hook.
//
// Threads: called on the thread of the run that it was given to.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "simulator/time.h"

namespace ddproof::sim {

inline constexpr std::uint64_t kAllBytes = std::numeric_limits<std::uint64_t>::max();

// What happens to one message. Several of these may hold at once. What a transport does about a
// message that arrives damaged is its own matter: see backends/sim/fabric.h.
struct MessageFate {
  bool drop = false;       // it never arrives
  bool duplicate = false;  // a copy follows it: takes the ports' time, is counted as received, and
                           // is thrown away, because messages of a channel are numbered
  Time delay = 0;          // added to its travel time; messages of one channel stay in order
  // Above 0: it arrives only after the next message that somebody else sends to its receiver; when
  // there is none within this time after its own arrival, then at the end of this time.
  Time overtaken_within = 0;
  std::uint64_t bytes_max = kAllBytes;       // so many arrive, the first ones
  std::optional<std::uint64_t> flipped_bit;  // modulo its length; no matter to an empty message
};

// What happens to a rank as it begins an operation.
enum class RankFate : std::uint8_t {
  kLives,
  kCrashes,  // its fibers unwind and its connections break
  kHangs,    // it never runs again, and nobody is told
};

// What happens to one write.
struct WriteFate {
  bool fails = false;
  std::uint64_t bytes_max = 0;  // of a write that fails: so many reach the file
  const char* reason = "";      // as the error tells it
};

class FaultHook {
 public:
  virtual ~FaultHook() = default;
  // From now on nothing strikes: everything is answered as without a hook.
  virtual void stop() {}
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
  // How long a sleep or a computation of `duration` takes on this rank.
  virtual Time on_sleep(int rank, Time duration) {
    (void)rank;
    return duration;
  }
  // How far the rank's wall clock is ahead of the others'; asked whenever it is read.
  virtual Time on_wall_clock(int rank) {
    (void)rank;
    return 0;
  }
  // Asked before each write, sync and change (each of the two, and make_directory, create, rename,
  // remove); the change first. `number` counts those of `rank`: 1, 2, ...
  virtual WriteFate on_write(int rank, std::uint64_t number) {
    (void)rank, (void)number;
    return {};
  }
  // True: the sync fails.
  virtual bool on_sync(int rank, std::uint64_t number) {
    (void)rank, (void)number;
    return false;
  }
  // A value: the power is cut before the change; it is the seed of what survives.
  virtual std::optional<std::uint64_t> on_disk_change(int rank, std::uint64_t number) {
    (void)rank, (void)number;
    return std::nullopt;
  }
};

}  // namespace ddproof::sim
