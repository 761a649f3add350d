// One flow of control of a rank. The first fiber of a rank is its main; others are its tasks.
//
// Threads and life: belongs to one Simulation and its thread. The owner of the shared_ptr may
// look at an ended fiber for as long as it likes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/context.h"
#include "simulator/step_observer.h"
#include "simulator/wait.h"

namespace ddproof::sim {

class Simulation;

class Fiber {
 public:
  Fiber(Simulation& simulation, std::uint64_t id, int rank, std::string name,
        std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  std::uint64_t id() const { return id_; }  // 1, 2, ... in the order of spawning
  int rank() const { return rank_; }
  // The same in every run in which its maker has seen the same, unlike its id.
  ObjectKey key() const { return key_; }
  const std::string& name() const { return name_; }
  bool ended() const { return state_ == State::kEnded; }
  // Its rank died, or the run ended before it.
  bool killed() const { return killed_; }
  // What the body threw; null while running, after a return, and when the rank was killed.
  const std::exception_ptr& error() const { return error_; }

 private:
  friend class Simulation;
  friend class TimerHeap;
  enum class State : std::uint8_t { kReady, kRunning, kWaiting, kFrozen, kEnded };
  enum class WakeUp : std::uint8_t { kNotified, kDeadline, kDeadlock, kKilled };

  // What a switch touches comes first, so that it fits few cache lines.
  std::optional<Context> context_;
  std::uint64_t id_;
  int rank_;
  State state_ = State::kReady;
  WakeUp wake_up_ = WakeUp::kNotified;
  bool killed_ = false;
  bool hung_ = false;
  bool is_main_ = false;
  int kill_count_ = 0;              // waits and polls since its rank died
  Time patience_until_ = kNever;    // of the wait it is in
  std::size_t deadline_place_ = 0;  // in the TimerHeap of deadlines, plus one; 0: none
  std::size_t patience_place_ = 0;  // in that of patience
  const WaitReason* reason_ = nullptr;

  Simulation& simulation_;
  WaitReason activity_;    // the operation it is in; without text: none
  std::size_t index_ = 0;  // in Simulation::fibers_
  ObjectKey key_ = 0;
  std::uint64_t objects_made_ = 0;
  std::string name_;
  std::function<void()> body_;
  std::exception_ptr error_;
  std::vector<std::shared_ptr<Fiber>> joiners_;
  Stack stack_;
};

}  // namespace ddproof::sim
