// What collectives cost in the port model of simulator/network.h, computed from their algorithms
// alone: every port is a recurrence of max and plus. No fibers, no events, nothing of the simulator
// but the time that bytes take on a link.
//
// All ranks start at time 0. A transfer begins when both sides have posted it, and ends for both
// when it has arrived.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/api/placement.h"
#include "simulator/network.h"

namespace ddproof {

inline constexpr sim::LinkClass kNear{2'000, 10'000'000'000};
inline constexpr sim::LinkClass kFar{7'000, 2'000'000'000};
inline constexpr sim::LinkClass kThin{2'000, 4'000'000};  // the port rules, not the latency

struct Net {
  sim::LinkClass same_node = kNear;
  int ranks_per_node = 0;  // 0: all on one node; nodes are joined by kFar
  int nodes_in_turns = 0;  // above 0: rank r is on node r modulo this

  int node_of(int rank) const {
    if (nodes_in_turns > 0) return rank % nodes_in_turns;
    return ranks_per_node == 0 ? 0 : rank / ranks_per_node;
  }
  Placement placement(int ranks) const {
    Placement placement;
    for (int rank = 0; rank < ranks; ++rank) placement.push_back(node_of(rank));
    return placement;
  }
};

inline std::ostream& operator<<(std::ostream& out, const Net& net) {
  if (net.nodes_in_turns > 0) return out << net.nodes_in_turns << " nodes in turns";
  return out << "nodes of " << net.ranks_per_node;
}

// What a rank sends.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  bool operator==(const Traffic&) const = default;
};

struct Message {
  int from;
  int to;
  std::uint64_t bytes;
};

class PortModel {
 public:
  PortModel(int ranks, const Net& net)
      : net_(net), at_(static_cast<std::size_t>(ranks)), ports_(at_.size()), traffic_(at_.size()) {}

  int ranks() const { return static_cast<int>(at_.size()); }
  const Traffic& traffic(int rank) const { return traffic_[rank]; }
  // The rank has come so far; the collective is done when all have.
  sim::Time& at(int rank) { return at_[rank]; }
  sim::Time time() const { return *std::ranges::max_element(at_); }

  // When a message that begins at `begin` has arrived. In the order in which a port serves them.
  sim::Time deliver(const Message& message, sim::Time begin) {
    Ports& from = ports_[message.from];
    Ports& to = ports_[message.to];
    const sim::LinkClass& link = link_of(message.from, message.to);
    const sim::Time transfer = link.transfer_time(message.bytes);
    const sim::Time start = std::max(begin, from.out_free);
    from.out_free = start + transfer;
    to.in_free = std::max(start + link.latency, to.in_free) + transfer;
    ++traffic_[message.from].messages;
    traffic_[message.from].bytes += message.bytes;
    return to.in_free;
  }

  // Every rank posts all its messages, in this order, and those to it, and waits for all of them.
  // What begins at one point in time leaves by turns: the first of each rank, then the second.
  void exchange(const std::vector<Message>& messages) {
    struct Departure {
      sim::Time begin;
      int turn;
      Message message;
    };
    std::map<std::pair<int, sim::Time>, int> turns;
    std::vector<Departure> departures;
    for (const Message& message : messages) {
      const sim::Time begin = std::max(at_[message.from], at_[message.to]);
      departures.push_back({begin, turns[{message.from, begin}]++, message});
    }
    std::ranges::sort(departures, {}, [](const Departure& departure) {
      return std::tuple(departure.begin, departure.turn, departure.message.from);
    });
    std::vector<sim::Time> done = at_;
    for (const Departure& departure : departures) {
      wait_for(departure.message, deliver(departure.message, departure.begin), done);
    }
    at_ = done;
  }

  // In each round a rank sends `bytes_of(rank, round)` to the rank `step` after it, or nothing when
  // that is empty; two rounds are in flight.
  template <class BytesOf>
  void ring(int step, std::uint64_t rounds, BytesOf&& bytes_of) {
    std::vector<sim::Time> last = at_, last_but_one = at_;
    const auto wait_for_last_but_one = [&] {
      for (int rank = 0; rank < ranks(); ++rank) at(rank) = std::max(at(rank), last_but_one[rank]);
      last_but_one = last;
    };
    for (std::uint64_t round = 0; round < rounds; ++round) {
      wait_for_last_but_one();
      last = at_;
      for (int rank = 0; rank < ranks(); ++rank) {
        const std::optional<std::uint64_t> bytes = bytes_of(rank, round);
        if (!bytes) continue;
        const Message message{rank, (rank + step + ranks()) % ranks(), *bytes};
        wait_for(message, deliver(message, std::max(at(message.from), at(message.to))), last);
      }
    }
    wait_for_last_but_one();
    wait_for_last_but_one();
  }

 private:
  struct Ports {
    sim::Time out_free = 0;
    sim::Time in_free = 0;
  };

  const sim::LinkClass& link_of(int from, int to) const {
    return net_.node_of(from) == net_.node_of(to) ? net_.same_node : kFar;
  }

  static void wait_for(const Message& message, sim::Time arrival, std::vector<sim::Time>& done) {
    for (const int rank : {message.from, message.to}) done[rank] = std::max(done[rank], arrival);
  }

  Net net_;
  std::vector<sim::Time> at_;
  std::vector<Ports> ports_;
  std::vector<Traffic> traffic_;
};

}  // namespace ddproof
