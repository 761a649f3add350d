// What happened in a run, one record an event: what the digest folds in and a trace prints.
// The legend of the text form is in simulator/README.md.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "simulator/time.h"

namespace ddproof::sim {

enum class EventKind : std::uint8_t {
  kSpawn,       // a fiber was made
  kRun,         // a fiber got the processor
  kWait,        // a fiber began to wait; peer: for whom, label: why
  kEnd,         // a fiber's body returned or threw
  kDeadline,    // a wait's deadline passed, or a sleep ended
  kActivity,    // a fiber began an operation; label: its description, value: its number
  kSend,        // a message left; value: bytes
  kDeliver,     // a message arrived at rank from peer; value: bytes
  kDrop,        // a fault swallowed a message
  kClose,       // a connection end closed
  kCrash,       // a rank died
  kHang,        // a rank fell silent
  kDeadlock,    // nobody can go on
  kEventLimit,  // the run was stopped
  kFault,       // a fault first took effect; value: its place in the plan, from 1; label: its text
  kHeal,        // faults stop; with a rank: it hung and goes on
  kLiveness,    // ranks that should make progress did not
};

const char* to_string(EventKind kind);

struct Event {
  Time time = 0;
  EventKind kind = EventKind::kRun;
  int rank = -1;  // -1: none
  int peer = -1;
  std::uint64_t fiber = 0;  // 0: none
  std::uint64_t value = 0;
  std::string_view label;  // not part of the digest: source lines differ between compilers
};

// "3 us rank 1 deliver <- 3 4096"
std::string to_string(const Event& event);

// Receives every event while a run goes on. `label` is valid during the call only.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void on_event(const Event& event) = 0;
};

// A running 64-bit fingerprint of the events: equal digests mean equal runs. Multiply-and-fold
// steps as in wyhash (Wang Yi, 2019).
class Digest {
 public:
  explicit constexpr Digest(std::uint64_t seed) : state_(seed ^ 0xa0761d6478bd642f) {}

  constexpr void add(const Event& event) {
    const auto ranks = static_cast<std::uint64_t>(static_cast<std::uint32_t>(event.rank)) << 32 |
                       static_cast<std::uint32_t>(event.peer);
    fold(static_cast<std::uint64_t>(event.time), ranks);
    fold(event.fiber << 8 | static_cast<std::uint64_t>(event.kind), event.value);
  }

  constexpr std::uint64_t value() const { return state_; }

 private:
  constexpr void fold(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(state_ ^ a) * (b ^ 0xe7037ed1a0b428db);
    state_ = std::rotl(state_, 23) ^ static_cast<std::uint64_t>(product) ^
             static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t state_;
};

}  // namespace ddproof::sim
