// Faults as plain data: what goes wrong in a run, each addressed exactly, with one text form that
// is printed and parsed back. The forms (one fault a line here; "; " between them in a plan):
//
//   crash rank=2 operation=7              dies as it begins its 7th operation
//   hang rank=2 operation=7               falls silent there
//   slow rank=1 factor=4 delay=2us        sleeps and computes 4 times as long; what it sends takes
//                                         2 us longer
//   delay from=1 to=2 message=3 time=1ms  the 3rd message of 1 to 2 takes 1 ms longer
//   drop from=1 to=2 message=3            never arrives
//   duplicate from=1 to=2 message=3       arrives twice
//   reorder from=1 to=2 message=3 time=1ms  the next message to 2 from somebody else overtakes it;
//                                         when none is sent within 1 ms, it goes on alone
//   truncate from=1 to=2 message=3 bytes=8  at most 8 bytes of it arrive
//   flip from=1 to=2 message=3 bit=77     bit 77 modulo its length arrives inverted
//   partition ranks=0,1 start=1ms end=2ms nothing passes between these ranks and the others: what
//                                         is sent meanwhile travels after the end. end=never: lost
//   short-write rank=0 write=4 bytes=10   of its 4th write 10 bytes reach the file; it fails
//   full-disk rank=0 write=4              this write and all later ones of all ranks fail
//   failed-sync rank=0 sync=2             fails; no later sync makes more of that file durable,
//                                         though it succeeds, as on Linux
//   power-cut rank=0 change=5 seed=9      as it makes its 5th change on the disk all ranks die; the
//                                         seed decides what of the unsynced survives, whole or torn
//   clock-jump rank=1 start=1ms by=-3s    its wall clock jumps there. Its monotonic one never does
//
// Operations, messages (of the pair), writes, syncs (of files and directories) and changes on the
// disk (make_directory, create, write, sync, rename, remove) count from 1, for each rank on its
// own. Times are whole numbers of ns, us, ms or s; a text holds the largest of these that is exact.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/time.h"

namespace ddproof::sim {

enum class FaultKind : std::uint8_t {
  kCrash,
  kHang,
  kSlow,
  kDelay,
  kDrop,
  kDuplicate,
  kReorder,
  kTruncate,
  kFlip,
  kPartition,
  kShortWrite,
  kFullDisk,
  kFailedSync,
  kPowerCut,
  kClockJump,
};
inline constexpr int kFaultKindCount = 15;

// "crash", "short-write", ...
const char* to_string(FaultKind kind);
// Whether it strikes one message of `rank` to `peer`.
bool strikes_a_message(FaultKind kind);

// A kind uses the fields that its text form shows, and leaves the others alone.
struct Fault {
  FaultKind kind = FaultKind::kCrash;
  int rank = 0;              // a message's sender
  int peer = 0;              // its receiver
  std::uint64_t number = 1;  // which operation, message, write, sync or change
  std::uint64_t amount = 0;  // factor, bytes, bit or seed
  Time time = 0;             // delay, time or by
  Time start = 0;
  Time end = kNever;
  std::vector<int> ranks;  // ascending

  bool operator==(const Fault&) const = default;
};

using FaultPlan = std::vector<Fault>;

std::string to_string(const Fault& fault);
std::string to_string(const FaultPlan& plan);

// Throws std::invalid_argument whose text quotes the fault and says what is allowed:
//   fault "crash rank=2": expected "operation=NUMBER" at its end; the form is "crash rank=RANK
//   operation=NUMBER"
Fault parse_fault(std::string_view text);
// Any number of faults with ';' between them; a blank text is the empty plan.
FaultPlan parse_fault_plan(std::string_view text);

// Throws std::invalid_argument for a fault that no world of so many ranks can have.
void check_fault_plan(const FaultPlan& plan, int ranks);

}  // namespace ddproof::sim
