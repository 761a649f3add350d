// Bounded exhaustive search over the orders of steps, with dynamic partial-order reduction: runs
// the program again and again, at least once for each class of runs that differ in the order of
// dependent steps, until no class is left.
//
//   Explorer explorer;
//   do { run the program with `explorer` as its scheduler and its observer } while
//      (explorer.advance());
//
// The method is source sets with sleep sets (Abdulla, Aronis, Jonsson, Sagonas: "Optimal dynamic
// partial order reduction", POPL 2014): after a run, each pair of neighbouring dependent steps that
// could have come the other way round leaves a fiber to be tried first.
// What is dependent: see StepObserver. After its verdict a run is not explored further. Only steps
// at the same virtual time can change places: time itself, random numbers and faults are those of
// the seed.
//
// Threads: belongs to one search on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simulator/scheduler.h"
#include "simulator/step_observer.h"

namespace ddproof::sim {

class Explorer final : public SeededScheduler, public StepObserver {
 public:
  void begin_run(std::uint64_t seed) override;
  std::size_t next(std::span<const Runnable> runnable) override;
  void on_step(const Fiber& fiber) override;
  void on_touch(ObjectKey object, Access access) override;
  void on_ready(const Fiber& fiber) override;
  void on_all_wait() override;
  void on_verdict() override;
  void on_uncovered(std::string_view what) override;

  // Call after each run. True: run again; false: every class has been run, and the next run would
  // begin all over.
  bool advance();

  std::uint64_t traces() const { return traces_; }  // complete runs
  // Runs that turned out to belong to a class already run; they count for nothing.
  std::uint64_t redundant() const { return redundant_; }
  // Moments before a step that were found, each counted once however often it is replayed.
  std::uint64_t states() const { return states_; }
  // Why the search proves nothing although it ends; empty: it does.
  const std::string& gap() const { return gap_; }

 private:
  struct Touch {
    ObjectKey object;
    Access access;
    auto operator<=>(const Touch&) const = default;
  };
  struct Step {
    std::uint64_t fiber = 0;
    int rank = 0;
    bool touches_everything = false;
    std::uint64_t objects = 0;  // a bit for each object's hash
    std::vector<Touch> touches;
    std::vector<std::uint64_t> readied;
    std::size_t round = 0;     // where its virtual moment began
    std::vector<bool> before;  // the steps of the round, from its beginning, that must precede it
  };
  // The moment before a step.
  struct Node {
    std::uint64_t chosen = 0;
    std::vector<std::uint64_t> runnable;
    std::vector<std::uint64_t> to_try;  // the chosen ones among them
    std::vector<Step> done;             // chosen before; what followed has been explored
    std::vector<Step> asleep;           // would lead only to classes explored elsewhere
  };

  static bool conflict(const Step& a, const Step& b);
  static bool holds(const std::vector<Step>& steps, std::uint64_t fiber);
  void end_early();
  void add_node(std::vector<std::uint64_t> runnable);
  void find_races();
  void order_step(std::size_t later);
  void reverse(std::size_t earlier, std::size_t later);
  bool happens_before(std::size_t earlier, std::size_t later) const;

  std::vector<Node> nodes_;  // one per step of the latest run
  std::vector<Step> steps_;
  std::size_t replayed_ = 0;  // so many nodes are given
  std::size_t depth_ = 0;     // steps begun
  std::size_t round_ = 0;
  bool chosen_ = false;        // by next(), and not begun
  bool is_running_ = false;    // a step, not an event
  bool is_over_ = false;       // nothing more to learn from this run
  bool is_redundant_ = false;  // because it is of a class already run
  bool repeats_ = true;        // the program, given the same choices
  std::uint64_t traces_ = 0;
  std::uint64_t redundant_ = 0;
  std::uint64_t states_ = 0;
  std::string gap_;
};

}  // namespace ddproof::sim
