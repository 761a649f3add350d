#include "simulator/network.h"

#include <algorithm>
#include <stdexcept>

namespace ddproof::sim {

Time LinkClass::transfer_time(std::uint64_t bytes) const {
  constexpr unsigned __int128 kNanosecondsPerSecond = 1'000'000'000;
  return static_cast<Time>(bytes * kNanosecondsPerSecond / bytes_per_second);
}

Network::Network(Simulation& simulation, const NetworkOptions& options)
    : simulation_(simulation),
      options_(options),
      ports_(static_cast<std::size_t>(simulation.ranks())) {
  for (const LinkClass& link : {options.same_node, options.across_nodes}) {
    if (link.latency < 0 || link.bytes_per_second == 0) {
      throw std::invalid_argument("a link needs a latency of at least 0 and a bandwidth above 0");
    }
  }
  if (options.ranks_per_node < 0 || options.jitter_max < 0) {
    throw std::invalid_argument("ranks per node and jitter must be at least 0");
  }
}

int Network::node_of(int rank) const {
  return options_.ranks_per_node == 0 ? 0 : rank / options_.ranks_per_node;
}

const LinkClass& Network::link(int from, int to) const {
  return node_of(from) == node_of(to) ? options_.same_node : options_.across_nodes;
}

Time Network::send(int from, int to, std::uint64_t bytes, Flow& flow, const Action& on_arrival) {
  if (!simulation_.is_alive(from)) return kNever;
  RankReport& sender = simulation_.traffic(from);
  ++sender.messages_sent;
  sender.bytes_sent += bytes;
  simulation_.record(EventKind::kSend, from, to, bytes);

  Ports& out = ports_[static_cast<std::size_t>(from)];
  Ports& in = ports_[static_cast<std::size_t>(to)];
  const LinkClass& link = this->link(from, to);
  const Time transfer = link.transfer_time(bytes);
  const Time start = std::max(simulation_.now(), out.out_free);
  Time arrive = std::max(start + link.latency, in.in_free) + transfer;
  out.out_free = start + transfer;
  in.in_free = arrive;

  if (options_.jitter_max > 0) {
    const auto bound = static_cast<std::uint64_t>(options_.jitter_max) + 1;
    arrive += static_cast<Time>(below(simulation_.scheduler().next_u64(), bound));
  }
  if (FaultHook* faults = simulation_.faults()) {
    const MessageFate fate = faults->on_message(from, to, bytes, sender.messages_sent);
    if (fate.drop) {
      simulation_.record(EventKind::kDrop, from, to, bytes);
      return kNever;
    }
    arrive = add_time(arrive, fate.delay);
  }
  arrive = std::max(arrive, flow.last_arrival);
  flow.last_arrival = arrive;
  simulation_.schedule(arrive, on_arrival);
  return arrive;
}

void Network::arrived(int from, int to, std::uint64_t bytes) {
  RankReport& receiver = simulation_.traffic(to);
  ++receiver.messages_received;
  receiver.bytes_received += bytes;
  simulation_.record(EventKind::kDeliver, to, from, bytes);
}

}  // namespace ddproof::sim
