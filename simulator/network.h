// The network between ranks: how long a message takes, and that it arrives.
//
// Model (the simplest that reproduces published scaling, see README.md): two link classes with a
// latency and a bandwidth each, and per rank one port out and one port in, which pass one message
// at a time:
//
//   start  = max(now, out port free)             out port free = start  + bytes / bandwidth
//   arrive = max(start + latency, in port free)  + bytes / bandwidth    = in port free
//
// in integer nanoseconds, bytes / bandwidth rounded down. A port serves messages in the order in
// which they were sent. Delays from faults and jitter come on top and hold up nobody else.
//
// Threads: those of the Simulation.
#pragma once

#include <cstdint>
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
  int ranks_per_node = 0;  // ranks 0..k-1 on node 0, and so on; 0: all on one node
  LinkClass same_node = {2'000, 50'000'000'000};
  LinkClass across_nodes = {5'000, 12'500'000'000};
  Time jitter_max = 0;  // each message takes up to this much longer, drawn from the scheduler
};

// Messages of one flow arrive in the order in which they were sent.
struct Flow {
  Time last_arrival = 0;
};

class Network {
 public:
  // Throws std::invalid_argument for a negative number or a bandwidth of zero.
  Network(Simulation& simulation, const NetworkOptions& options);

  // Sends now; `on_arrival` runs as an event when all of it is there. Returns that time, or kNever
  // when it will never arrive: a fault dropped it, or the sender is dead.
  Time send(int from, int to, std::uint64_t bytes, Flow& flow, const Action& on_arrival);
  // To be called by `on_arrival`: records and counts the arrival.
  void arrived(int from, int to, std::uint64_t bytes);

  int node_of(int rank) const;
  const LinkClass& link(int from, int to) const;

 private:
  struct Ports {
    Time out_free = 0;
    Time in_free = 0;
  };

  Simulation& simulation_;
  NetworkOptions options_;
  std::vector<Ports> ports_;
};

}  // namespace ddproof::sim
