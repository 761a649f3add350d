// Sees the steps of a run and what each of them touches: what a search must know to tell which
// orders of steps differ.
//
// A step is what a fiber does from getting the processor to giving it up. Two steps of different
// ranks are independent, whatever their order, unless both touch an object in ways that conflict:
// two accesses of one object commute only when they are of the same commuting kind. So whatever
// ranks share must be touched (Simulation::touch) before it is used; the simulator and backends/sim
// do so for what is theirs, a program must do so for variables that its ranks share.
// Steps of one rank always count as dependent, and steps at different virtual times are ordered.
#pragma once

#include <cstdint>
#include <string_view>

namespace ddproof::sim {

class Fiber;

enum class Access : std::uint8_t {
  kWrite,  // conflicts with every access
  kRead,   // commutes with reads
  kAdd,    // commutes with adds: what changes the object, but in any order to the same effect
};

// What is touched. From Simulation::new_object(), the same in every run in which its maker has seen
// the same; or a number derived from one.
using ObjectKey = std::uint64_t;
inline constexpr ObjectKey kEverything = 0;  // conflicts with every step
inline constexpr ObjectKey kModelBits = 1;   // Scheduler::next_u64()
inline constexpr ObjectKey kUnnamedWaitLists = 2;

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // The fiber gets the processor, or would if its rank had not fallen silent.
  virtual void on_step(const Fiber& fiber) = 0;
  // The step, or outside of steps an event, touches an object.
  virtual void on_touch(ObjectKey object, Access access) = 0;
  // The step, or an event, makes a fiber runnable that was not.
  virtual void on_ready(const Fiber& fiber) = 0;
  // No fiber can run: time passes, or the run comes to its end.
  virtual void on_all_wait() = 0;
  // The run has its verdict; what follows only unwinds.
  virtual void on_verdict() = 0;
  // The run does something whose dependencies touches cannot tell: a search must not claim to be
  // complete.
  virtual void on_uncovered(std::string_view what) = 0;
};

}  // namespace ddproof::sim
