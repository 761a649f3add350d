// Why and until when a fiber waits, and how a wait can end otherwise.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/time.h"

namespace ddproof::sim {

enum class WaitKind : std::uint8_t {
  kCall,     // the ordinary kind; a verdict or the rank's death ends it with an exception
  kIdle,     // a service waiting for work: no part of a deadlock
  kCleanup,  // locks and joins, which destructors use: never ended by an exception
};

// A call that ranks make together, all of whom tell it in the same words.
struct MeetingCall {
  int ranks = 0;  // how many; 0: it is no such call
  std::string_view words = {};
};

// What a verdict is made from. `ranks` are those that the wait still needs: whose part is done is
// not among them. Nothing but what these ranks and those in `may_leave` do, an event that concerns
// the waiting rank, or another fiber of its own, may end the wait. Must stay valid while the fiber
// waits.
struct WaitReason {
  std::string_view what;
  const char* file = "";
  int line = 0;
  const std::vector<int>* ranks = nullptr;      // the ranks that could end the wait; null: unknown
  const std::vector<int>* may_leave = nullptr;  // others that end it too, by leaving; null: none
  // The ranks of a call that nobody leaves before all of them have come to it, one such vector for
  // each group; null: it is none, or they are not known.
  const std::vector<int>* gathers = nullptr;
  WaitKind kind = WaitKind::kCall;
  bool any = false;       // one of `ranks` is enough; else it takes them all
  bool is_local = false;  // only the rank's own fibers can end it; `ranks` is null
  MeetingCall meeting = {};
};

// A deadline is either an event of the program (a sleep, a poll), or patience: the limit of a call
// that hopes to end before. Patience runs out only while something else can still happen: when
// nothing but patience is left the run is a deadlock, and the verdict comes at once.
struct Deadline {
  Time at = kNever;
  bool is_patience = false;
};

// Thrown by a wait of kind kCall when its rank can never go on. The text is the verdict.
class DeadlockError : public std::runtime_error {
 public:
  DeadlockError(const std::string& verdict, std::vector<int> culprits, bool is_mismatch)
      : std::runtime_error(verdict), culprits_(std::move(culprits)), is_mismatch_(is_mismatch) {}
  // Who is to blame, if anybody: see DeadlockCause, and find_crossed_calls() for a mismatch.
  const std::vector<int>& culprits() const { return culprits_; }
  // Ranks called on different groups.
  bool is_mismatch() const { return is_mismatch_; }

 private:
  std::vector<int> culprits_;
  bool is_mismatch_;
};

// The run was stopped at its event limit.
class EventLimitError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown by every wait of a rank that died, so that its stack unwinds. Not an std::exception: code
// that handles errors must not stop it.
struct RankKilled {};

}  // namespace ddproof::sim
