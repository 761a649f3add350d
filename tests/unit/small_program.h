// Small random programs whose ranks share variables, locks, flags, tasks and messages: what
// searches over schedules are checked with. Everything that a rank could notice is part of the
// outcome.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "simulator/network.h"
#include "simulator/simulation.h"
#include "simulator/wait_list.h"

namespace ddproof::test {

enum class Op {
  kWrite,
  kRead,
  kAdd,
  kYield,
  kSleep,
  kWaitFlag,
  kSetFlag,
  kLock,
  kUnlock,
  kSend,
  kReceive,
  kTask,
  kPause,
  kWakeNext,
  kCount
};

struct SmallProgram {
  std::vector<std::vector<std::pair<Op, int>>> ranks;  // each with the object it uses, 0 or 1
};

inline SmallProgram draw_program(std::uint64_t seed, int ranks_max, int ops_max) {
  sim::SplitMix64 random(sim::mix64(seed));
  const auto draw = [&](int bound) {
    return static_cast<int>(sim::below(random.next(), static_cast<std::uint64_t>(bound)));
  };
  SmallProgram program;
  program.ranks.resize(static_cast<std::size_t>(2 + draw(ranks_max - 1)));
  for (auto& ops : program.ranks) {
    for (int count = 1 + draw(ops_max); count > 0; --count) {
      ops.emplace_back(static_cast<Op>(draw(static_cast<int>(Op::kCount))), draw(2));
    }
  }
  return program;
}

// One run of a SmallProgram.
class SmallWorld {
 public:
  SmallWorld(const SmallProgram& program, const sim::SimulationOptions& options)
      : program_(program),
        simulation_(options),
        network_(simulation_, {}),
        logs_(program.ranks.size()) {
    for (int i = 0; i < 2; ++i) {
      objects_.push_back(std::make_unique<Object>(simulation_));
      inboxes_.push_back(std::make_unique<Inbox>(simulation_, network_, i));
    }
  }

  // What came out: each rank's log, the final state, the verdict.
  std::string run() {
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      mains_.push_back(
          simulation_.spawn(static_cast<int>(rank), "main", [this, rank] { run_rank(rank); }));
    }
    const sim::Report report = simulation_.run();
    std::string outcome;
    for (const std::string& log : logs_) outcome += log + "|";
    for (const auto& object : objects_) outcome += std::to_string(object->value) + ",";
    for (const auto& inbox : inboxes_) outcome += inbox->text + ",";
    return outcome + report.verdict_text;
  }

 private:
  struct Object {
    explicit Object(sim::Simulation& simulation)
        : variable(simulation.new_object()),
          flag(simulation.new_object()),
          lock(simulation.new_object()),
          flag_waiters(simulation),
          lock_waiters(simulation) {}
    sim::ObjectKey variable, flag, lock;
    sim::WaitList flag_waiters, lock_waiters;
    int value = 1;
    bool is_set = false;
    bool is_locked = false;
  };
  struct Inbox {
    Inbox(sim::Simulation& simulation, sim::Network& network, int owner)
        : simulation(simulation),
          network(network),
          owner(owner),
          key(simulation.new_object()),
          waiters(simulation) {}
    void arrive(std::uint64_t from) {
      network.arrived(static_cast<int>(from), owner, 1);
      text += std::to_string(from);
      ++unread;
      waiters.wake_all(simulation);
    }
    sim::Simulation& simulation;
    sim::Network& network;
    int owner;
    sim::ObjectKey key;
    sim::WaitList waiters;
    std::string text;
    std::size_t unread = 0;
    std::deque<sim::Flow> flows = std::deque<sim::Flow>(8);
  };

  void run_rank(std::size_t rank) {
    std::string& log = logs_[rank];
    for (const auto& [op, which] : program_.ranks[rank]) {
      try {
        run_op(static_cast<int>(rank), op, static_cast<std::size_t>(which), log);
      } catch (const sim::DeadlockError&) {
        log += "D";
        return;
      }
    }
    log += "." + std::to_string(simulation_.now());
  }

  void run_op(int rank, Op op, std::size_t which, std::string& log) {
    Object& object = *objects_[which];
    switch (op) {
      case Op::kWrite:
        simulation_.touch(object.variable, sim::Access::kWrite);
        object.value = (object.value * 3 + rank + 1) % 1000;
        return;
      case Op::kRead:
        simulation_.touch(object.variable, sim::Access::kRead);
        log += "r" + std::to_string(object.value);
        return;
      case Op::kAdd:
        simulation_.touch(object.variable, sim::Access::kAdd);
        object.value += 10 * (rank + 1);
        return;
      case Op::kYield: return simulation_.sleep(0);
      case Op::kSleep: return simulation_.sleep(1);
      case Op::kWaitFlag: return wait_flag(object);
      case Op::kSetFlag:
        simulation_.touch(object.flag, sim::Access::kWrite);
        object.is_set = true;
        return object.flag_waiters.wake_all(simulation_);
      case Op::kLock: return lock(object);
      case Op::kUnlock:
        simulation_.touch(object.lock, sim::Access::kWrite);
        object.is_locked = false;
        return object.lock_waiters.wake_all(simulation_);
      case Op::kSend: return send(rank, *inboxes_[which]);
      case Op::kReceive: return receive(*inboxes_[which], log);
      case Op::kTask: return run_task(rank, object);
      case Op::kPause: return static_cast<void>(simulation_.wait({.what = "pause"}));
      case Op::kWakeNext: return wake_next(rank);
      case Op::kCount: return;
    }
  }

  void wait_flag(Object& object) {
    while (true) {
      simulation_.touch(object.flag, sim::Access::kRead);
      if (object.is_set) return;
      object.flag_waiters.wait(simulation_, {.what = "flag"});
    }
  }

  void lock(Object& object) {
    while (true) {
      simulation_.touch(object.lock, sim::Access::kWrite);
      if (!object.is_locked) break;
      object.lock_waiters.wait(simulation_, {.what = "lock"});
    }
    object.is_locked = true;
  }

  void send(int rank, Inbox& inbox) {
    simulation_.touch(inbox.key, sim::Access::kWrite);  // the order of arrival shows
    network_.send(rank, inbox.owner, 100, inbox.flows[static_cast<std::size_t>(rank)],
                  sim::action_of<&Inbox::arrive>(inbox, static_cast<std::uint64_t>(rank)));
  }

  void receive(Inbox& inbox, std::string& log) {
    while (true) {
      simulation_.touch(inbox.key, sim::Access::kWrite);
      if (inbox.unread > 0) break;
      inbox.waiters.wait(simulation_, {.what = "message"});
    }
    log += "m" + std::string(1, inbox.text[inbox.text.size() - inbox.unread--]);
  }

  void run_task(int rank, Object& object) {
    std::string& log = logs_[static_cast<std::size_t>(rank)];
    const auto task = simulation_.spawn(rank, "task", [this, rank, &object, &log] {
      simulation_.touch(object.variable, sim::Access::kWrite);
      object.value = (object.value * 7 + rank) % 1000;
      log += "t";
    });
    simulation_.sleep(0);
    log += "s";
    simulation_.sleep(0);
    simulation_.join(*task);
  }

  void wake_next(int rank) {
    simulation_.wake(*mains_[static_cast<std::size_t>(rank + 1) % mains_.size()]);
  }

  const SmallProgram& program_;
  sim::Simulation simulation_;
  sim::Network network_;
  std::vector<std::unique_ptr<Object>> objects_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
  std::vector<std::string> logs_;
  std::vector<std::shared_ptr<sim::Fiber>> mains_;
};

}  // namespace ddproof::test
