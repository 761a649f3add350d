#include "simulator/network.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ddproof::sim {

Time LinkClass::transfer_time(std::uint64_t bytes) const {
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  if (bytes <= ~std::uint64_t{0} / kNanosecondsPerSecond) {  // a division of 64 bits is far cheaper
    return static_cast<Time>(bytes * kNanosecondsPerSecond / bytes_per_second);
  }
  using Wide = unsigned __int128;
  return static_cast<Time>(Wide{bytes} * kNanosecondsPerSecond / bytes_per_second);
}

Network::Network(Simulation& simulation, NetworkOptions options)
    : simulation_(simulation),
      options_(std::move(options)),
      ports_(static_cast<std::size_t>(simulation.ranks())),
      ports_key_(simulation.new_object()) {
  for (const LinkClass& link : {options_.same_node, options_.across_nodes}) {
    if (link.latency < 0 || link.bytes_per_second == 0) {
      throw std::invalid_argument("a link needs a latency of at least 0 and a bandwidth above 0");
    }
  }
  const std::vector<int>& nodes = options_.node_of_rank;
  if (!nodes.empty() && nodes.size() != ports_.size()) {
    throw std::invalid_argument("either each rank has a node or none has");
  }
  if (options_.jitter_max < 0 || std::ranges::any_of(nodes, [](int node) { return node < 0; })) {
    throw std::invalid_argument("nodes and jitter must be at least 0");
  }
}

bool Network::are_ports_free(int rank) const {
  const Ports& ports = ports_[static_cast<std::size_t>(rank)];
  return std::max(ports.out_free, ports.in_free) <= simulation_.now();
}

bool Network::share_node(int a, int b) const {
  const std::vector<int>& nodes = options_.node_of_rank;
  return nodes.empty() || nodes[static_cast<std::size_t>(a)] == nodes[static_cast<std::size_t>(b)];
}

const LinkClass& Network::link(int from, int to) const {
  return share_node(from, to) ? options_.same_node : options_.across_nodes;
}

void Network::touch(int from, int to, std::uint64_t bytes) {
  if (!simulation_.is_observed()) return;
  if (options_.jitter_max > 0) simulation_.touch(kModelBits, Access::kWrite);
  const bool one_latency =
      options_.node_of_rank.empty() || options_.same_node.latency == options_.across_nodes.latency;
  const bool in_no_time = one_latency && link(from, to).transfer_time(bytes) == 0;
  // Faults count the messages of their sender.
  if (in_no_time && simulation_.faults() == nullptr) return;
  simulation_.touch(ports_key_ + 2 * static_cast<ObjectKey>(from), Access::kWrite);
  simulation_.touch(ports_key_ + 2 * static_cast<ObjectKey>(to) + 1, Access::kWrite);
}

// When a message that is sent now has passed both ports.
Time Network::pass_ports(int from, int to, std::uint64_t bytes) {
  Ports& out = ports_[static_cast<std::size_t>(from)];
  Ports& in = ports_[static_cast<std::size_t>(to)];
  const LinkClass& link = this->link(from, to);
  const Time transfer = link.transfer_time(bytes);
  const Time start = std::max(simulation_.now(), out.out_free);
  const Time arrive = std::max(start + link.latency, in.in_free) + transfer;
  out.out_free = start + transfer;
  in.in_free = arrive;
  return arrive;
}

Passage Network::send(int from, int to, std::uint64_t bytes, Flow& flow, const Action& on_arrival) {
  touch(from, to, bytes);
  if (!simulation_.is_alive(from)) return {};
  RankReport& sender = simulation_.report_of(from);
  ++sender.messages_sent;
  sender.bytes_sent += bytes;
  simulation_.record(EventKind::kSend, from, to, bytes);

  Time arrive = pass_ports(from, to, bytes);
  if (options_.jitter_max > 0) {
    const auto bound = static_cast<std::uint64_t>(options_.jitter_max) + 1;
    arrive += static_cast<Time>(below(simulation_.scheduler().next_u64(), bound));
  }
  if (FaultHook* faults = simulation_.faults()) {
    const MessageFate fate = faults->on_message(from, to, bytes, sender.messages_sent);
    return send_on(from, to, bytes, arrive, flow, on_arrival, fate);
  }
  flow.last_arrival = std::max(arrive, flow.last_arrival);
  simulation_.schedule(flow.last_arrival, on_arrival);
  return {flow.last_arrival, bytes};
}

// What `send` does about faults; `arrive` is when the message comes without them.
Passage Network::send_on(int from, int to, std::uint64_t bytes, Time arrive, Flow& flow,
                         const Action& on_arrival, const MessageFate& fate) {
  if (fate.drop) {
    simulation_.record(EventKind::kDrop, from, to, bytes);
    simulation_.note_lost_message();
    return {};
  }
  arrive = std::max(add_time(arrive, fate.delay), flow.last_arrival);
  flow.last_arrival = add_time(arrive, fate.overtaken_within);
  if (fate.overtaken_within > 0) {
    held_.push_back({from, to, arrive, on_arrival, false});
    simulation_.schedule(flow.last_arrival, action_of<&Network::let_go>(*this, held_.size() - 1));
  } else {
    simulation_.schedule(arrive, on_arrival);
    overtake(from, to, arrive);
  }
  if (fate.duplicate) send_copy(from, to, bytes, flow.last_arrival);
  Passage passage{flow.last_arrival, std::min(bytes, fate.bytes_max), fate.flipped_bit};
  if (passage.bytes == 0) passage.flipped_bit.reset();
  if (passage.flipped_bit) *passage.flipped_bit %= 8 * passage.bytes;
  return passage;
}

// A message that arrives then lets those go that waited for it.
void Network::overtake(int from, int to, Time arrival) {
  for (Held& held : held_) {
    if (held.is_gone || held.to != to || held.from == from) continue;
    held.is_gone = true;
    simulation_.schedule(std::max(held.arrival, arrival), held.on_arrival);
  }
}

void Network::let_go(std::uint64_t index) {
  Held& held = held_[index];
  if (std::exchange(held.is_gone, true)) return;
  held.on_arrival.run(held.on_arrival.target, held.on_arrival.argument);
}

void Network::send_copy(int from, int to, std::uint64_t bytes, Time after) {
  copies_.push_back({from, to, bytes});
  const Time arrive = std::max(pass_ports(from, to, bytes), after);
  simulation_.schedule(arrive, action_of<&Network::copy_arrived>(*this, copies_.size() - 1));
}

void Network::copy_arrived(std::uint64_t index) {
  const Copy& copy = copies_[index];
  arrived(copy.from, copy.to, copy.bytes);
}

void Network::arrived(int from, int to, std::uint64_t bytes) {
  RankReport& receiver = simulation_.report_of(to);
  ++receiver.messages_received;
  receiver.bytes_received += bytes;
  simulation_.record(EventKind::kDeliver, to, from, bytes);
}

}  // namespace ddproof::sim
