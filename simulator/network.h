// The network between ranks: how long a message takes, and that it arrives.
//
// Model (the simplest that reproduces published scaling, see README.md): two link classes with a
// latency and a bandwidth each, and per rank one port out and one port in, which pass one message
// at a time:
//
//   start  = max(now, out port free)             out port free = start  + bytes / bandwidth
//   arrive = max(start + latency, in port free)  + bytes / bandwidth    = in port free
//
// in integer nanoseconds, bytes / bandwidth rounded down. Any rank may be on any node. A port
// serves messages in the order in which they were sent. Delays from faults and jitter come on top
// and hold up nobody else.
//
// Threads: those of the Simulation.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "simulator/simulation.h"
#include "simulator/time.h"

namespace ddproof::sim {

struct LinkClass {
  Time latency = 0;
  std::uint64_t bytes_per_second = 1;  // > 0

  Time transfer_time(std::uint64_t bytes) const;
};

struct NetworkOptions {
  std::vector<int> node_of_rank;  // empty: all are on one node
  LinkClass same_node = {2'000, 50'000'000'000};
  LinkClass across_nodes = {5'000, 12'500'000'000};
  Time jitter_max = 0;  // each message takes up to this much longer, drawn from the scheduler
};

// Messages of one flow arrive in the order in which they were sent.
struct Flow {
  Time last_arrival = 0;
};

// What became of a message when it was sent.
struct Passage {
  Time arrival = kNever;    // kNever: it never arrives, a fault dropped it or the sender is dead
  std::uint64_t bytes = 0;  // so many arrive, the first ones
  std::optional<std::uint64_t> flipped_bit;  // below 8 * bytes: it arrives inverted
};

class Network {
 public:
  // Throws std::invalid_argument for a negative number, a bandwidth of zero, and nodes of fewer or
  // more ranks than there are.
  Network(Simulation& simulation, NetworkOptions options);

  // Sends now; `on_arrival` runs as an event, once, when all that arrives of it is there: not later
  // than `arrival` says.
  Passage send(int from, int to, std::uint64_t bytes, Flow& flow, const Action& on_arrival);
  // Touches what a message of this size would share with others: the ports, when the order in which
  // they serve can change a time. Messages that take no time in the ports commute. send() calls it;
  // so must a step that only prepares what another step sends. The order in which messages arrive
  // at one time is the business of `on_arrival`.
  void touch(int from, int to, std::uint64_t bytes);
  // To be called by `on_arrival`: records and counts the arrival.
  void arrived(int from, int to, std::uint64_t bytes);

  // Nothing that was sent so far is still to pass the rank's ports.
  bool are_ports_free(int rank) const;
  const LinkClass& link(int from, int to) const;

 private:
  struct Ports {
    Time out_free = 0;
    Time in_free = 0;
  };

  // A message that waits to be overtaken.
  struct Held {
    int from;
    int to;
    Time arrival;  // its own
    Action on_arrival;
    bool is_gone;
  };
  // The second one of a message.
  struct Copy {
    int from;
    int to;
    std::uint64_t bytes;
  };
  bool share_node(int a, int b) const;
  Passage send_on(int from, int to, std::uint64_t bytes, Time arrive, Flow& flow,
                  const Action& on_arrival, const MessageFate& fate);
  Time pass_ports(int from, int to, std::uint64_t bytes);
  void send_copy(int from, int to, std::uint64_t bytes, Time after);
  void copy_arrived(std::uint64_t index);
  void let_go(std::uint64_t index);
  void overtake(int from, int to, Time arrival);

  Simulation& simulation_;
  NetworkOptions options_;
  std::vector<Ports> ports_;
  std::deque<Held> held_;
  std::deque<Copy> copies_;
  ObjectKey ports_key_;  // plus 2 * rank: out, plus 1 more: in
};

}  // namespace ddproof::sim
