// Collectives as one event each: what Fidelity::kWhole does (sim_world.h).
//
// When all ranks of a group make one collective at one point in time and their ports are free, its
// results are computed at once (whole_data.h), every rank goes on at the time at which it would
// have after all messages, and is credited with its messages and bytes. The times come from the
// algorithm's own messages: the first call of a kind (operation, type, bytes, root) runs message by
// message, without data, in a simulation of its own, and its times are kept.
// Whatever else, it leaves to the messages: ranks that come at different times, calls that differ,
// hashed payloads, timeouts that would pass, sends and receives.
//
// While a call runs so, its ranks' ports are taken: a message of another group from or to one of
// them fails, with a text that says so, because its time would be wrong. A rank that leaves in the
// meantime ends the call of all others with "Connection closed by peer".
// Threads: that of the Simulation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/gloo/operations.h"
#include "simulator/network.h"
#include "simulator/report.h"
#include "simulator/simulation.h"

namespace ddproof {

class Endpoint;
struct Group;

class WholeCalls {
 public:
  WholeCalls(sim::Simulation& simulation, const sim::NetworkOptions& network);

  // True: the rank's call is done, now. False: run it message by message. Throws what Gloo throws.
  bool run(Endpoint& endpoint, const gloo_operations::Operation& operation);
  // To be called when an endpoint closes.
  void closed(Endpoint& endpoint);
  // A rank's ports belong to a call that runs as a whole.
  bool holds(int world_rank) const {
    return held_until_[static_cast<std::size_t>(world_rank)] > simulation_.now();
  }

 private:
  struct Traffic {
    std::uint64_t messages_sent, bytes_sent, messages_received, bytes_received;
  };
  // What a call of one kind takes, by rank of the group.
  struct Cost {
    std::vector<sim::Time> time;
    std::vector<Traffic> traffic;
    sim::Time longest = 0;
  };
  // Group, operation, type, bytes, root.
  using Kind = std::tuple<std::uint64_t, Op, std::string, std::size_t, int>;

  enum class State : std::uint8_t { kGathers, kRuns, kByMessages, kFailed };
  struct Meeting {
    Group* group = nullptr;
    std::uint32_t tag = 0;
    State state = State::kGathers;
    std::vector<const gloo_operations::Operation*> operations;  // by rank; null: not here
    std::vector<sim::Fiber*> waiting;
    int here = 0;
    int passed = 0;
    bool is_decided = false;
    std::vector<sim::Time> ends;  // when each rank goes on
    std::string failure;
  };
  using Meetings = std::map<std::pair<std::uint64_t, std::uint32_t>, Meeting>;

  bool can_run(const gloo_operations::Operation& operation, const Endpoint& endpoint) const;
  bool join(Meeting& meeting, int rank, const gloo_operations::Operation& operation);
  void decide(std::uint64_t meeting);
  void start(Meeting& meeting);
  void go_on(std::uint64_t meeting);
  void wake_all(Meeting& meeting);
  void forget_if_over(const Meeting& meeting);
  bool agree(const Meeting& meeting) const;
  const Cost& cost_of(const Meeting& meeting);
  Cost measure(const Meeting& meeting) const;

  sim::Simulation& simulation_;
  sim::NetworkOptions network_;
  std::vector<sim::Time> held_until_;  // by world rank
  std::map<Kind, Cost> costs_;
  Meetings meetings_;
};

}  // namespace ddproof
