// What a run came to. Plain data.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulator/disk.h"
#include "simulator/fault_plan.h"
#include "simulator/time.h"

namespace ddproof::sim {

enum class RankOutcome : std::uint8_t {
  kReturned,
  kThrew,
  kCrashed,
  kHung,
  kStopped,  // unwound or abandoned because the run ended: the event limit, others' deadlock
};

struct RankReport {
  RankOutcome outcome = RankOutcome::kReturned;
  std::exception_ptr error;  // kThrew: what its main threw; DeadlockError when it was stuck
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_received = 0;
  DiskCalls disk;
};

enum class Verdict : std::uint8_t {
  kNone,        // every main returned, threw, crashed or hung on its own account
  kDeadlock,    // at some point ranks could never go on, whatever the others did
  kMismatch,    // the same, since they called on different groups: simulator/crossed_calls.h
  kEventLimit,  // stopped at event_count_max: a livelock, or the limit is too low
  kLiveness,    // ranks made no progress after the faults were over: simulator/liveness.h
};

struct Report {
  std::vector<RankReport> ranks;
  Verdict verdict = Verdict::kNone;
  std::string verdict_text;           // who waits for what, in which call, at which line, for whom
  std::vector<int> verdict_culprits;  // of a deadlock: see DeadlockCause
                                      // of a mismatch: see find_crossed_calls()
                                      // of liveness: who holds up the others
  std::vector<std::vector<int>> verdict_cores;
  FaultPlan faults_fired;  // of the plan of the run, in the order in which they took effect
  std::map<std::string, std::uint64_t, std::less<>> probes;  // how often each was hit
  std::uint64_t digest = 0;
  Time virtual_time = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t switches = 0;  // how often a fiber got the processor
  std::uint64_t events = 0;
  std::uint64_t abandoned = 0;  // fibers that could not be unwound; what they owned is lost
};

}  // namespace ddproof::sim
