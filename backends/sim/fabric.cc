#include "backends/sim/fabric.h"

#include <algorithm>
#include <cstring>

#include "backends/api/check.h"
#include "backends/api/error.h"
#include "backends/api/list_of.h"
#include "backends/sim/whole_calls.h"

namespace ddproof {
namespace {

// Event arguments are numbers.
std::uint64_t to_argument(Channel& channel) { return reinterpret_cast<std::uint64_t>(&channel); }
Channel& to_channel(std::uint64_t argument) { return *reinterpret_cast<Channel*>(argument); }

Failure size_mismatch(const Channel& channel, std::size_t sent, std::size_t expected) {
  return {true, "rank " + std::to_string(channel.from) + " sends " + std::to_string(sent) +
                    " bytes where rank " + std::to_string(channel.to) + " expects " +
                    std::to_string(expected)};
}

Failure ports_taken(int rank) {
  return {true, "world rank " + std::to_string(rank) +
                    " has messages of two groups at once, and one of them makes a collective as a "
                    "whole: simulate this program message by message"};
}

// Of groups that are made by whoever asks first: no number that depends on who that was.
sim::ObjectKey key_of(const std::string& name, const std::vector<int>& members) {
  sim::ObjectKey key = 0;
  for (const char c : name) key = sim::mix64(key + static_cast<unsigned char>(c) + 1);
  for (const int member : members) key = sim::mix64(key + static_cast<std::uint64_t>(member) + 1);
  return key;
}

constexpr std::uint64_t kNoBit = ~std::uint64_t{0};

const Failure kClosedHere{false, "Connection closed by this rank"};

}  // namespace

std::size_t bytes_of_rank(const Call& call) {
  const std::size_t in = call.input.bytes(), out = call.output.bytes();
  return in == 0 || out == 0 ? std::max(in, out) : std::min(in, out);
}

Channel& Endpoint::channel_to(int peer) {
  if (Channel* channel = outbound_.find(peer)) return *channel;
  DDPROOF_CHECK(0 <= peer && peer < static_cast<int>(group_.endpoints.size()));
  return fabric_.make_channel(*this, group_.endpoints[static_cast<std::size_t>(peer)]);
}

Channel& Endpoint::channel_from(int peer) {
  if (Channel* channel = inbound_.find(peer)) return *channel;
  DDPROOF_CHECK(0 <= peer && peer < static_cast<int>(group_.endpoints.size()));
  return fabric_.make_channel(group_.endpoints[static_cast<std::size_t>(peer)], *this);
}

// Posts of both sides commute, and so do those of different channels: whichever post comes second
// starts the transfer, which leaves at the end of this time. What remains is the state of both
// ends.
void Endpoint::touch_post(int from, int to) const {
  sim::Simulation& simulation = fabric_.simulation_;
  if (!simulation.is_observed()) return;
  for (const int rank : {from, to}) {
    const Endpoint& end = group_.endpoints[static_cast<std::size_t>(rank)];
    simulation.touch(end.key(), sim::Access::kAdd);
  }
}

void Endpoint::touch() const { fabric_.simulation_.touch(key(), sim::Access::kWrite); }

Payload& Endpoint::begin_call(const Call& call) {
  is_comparison_ = call.on_behalf_of != nullptr && !is_point_to_point(call.op);
  if (!is_point_to_point(call.op)) ++collectives_;
  const bool steers = call.on_behalf_of != nullptr || call.op == Op::kMonitoredBarrier ||
                      bytes_of_rank(call) <= kSteeringBytes;
  payload_ = steers ? PayloadMode::kReal : fabric_.payload_;
  switch (payload_) {
    case PayloadMode::kReal: return real_payload_;
    case PayloadMode::kHashed: return hashed_payload_;
    case PayloadMode::kSizeOnly: return no_payload_;
  }
  return real_payload_;
}

Payload& Endpoint::begin_size_only() {
  payload_ = PayloadMode::kSizeOnly;
  return no_payload_;
}

void Endpoint::end_call(const Call& call, bool completed) {
  const bool has_result = call.output.bytes() > 0 && (call.op != Op::kReduce || call.root == rank_);
  if (payload_ == PayloadMode::kHashed && completed && has_result) {
    const std::uint64_t hash = hashes_.of(call.output.data(), call.output.bytes());
    std::memcpy(call.output.data(), &hash, std::min(sizeof hash, call.output.bytes()));
  }
  hashes_.clear();
  payload_ = PayloadMode::kReal;
  is_comparison_ = false;
}

void Endpoint::send(Poster& poster, int peer, std::uint64_t slot, std::byte* data,
                    std::size_t bytes) {
  if (is_closed_) return poster.failed(Direction::kSend, peer, kClosedHere);
  Channel& channel = channel_to(peer);
  touch_post(rank_, peer);
  Post* send = fabric_.make_post(poster, slot, data, bytes, payload_);
  send->number = ++fabric_.send_count_;
  Post* receive = channel.receives.take([&](const Post& p) { return p.slot == slot; });
  if (receive == nullptr && channel.any_receives > 0) {
    Endpoint& receiver = group_.endpoints[static_cast<std::size_t>(peer)];
    receive = receiver.take_any_receive([&](const AnyReceive& any) {
      return any.post->slot == slot && std::ranges::find(any.peers, rank_) != any.peers.end();
    });
  }
  if (receive != nullptr) {
    fabric_.match(channel, send, receive);
    return;
  }
  channel.sends.push(send);
  if (channel.end_at != sim::kNever) fabric_.watch_end(channel);
}

void Endpoint::receive(Poster& poster, int peer, std::uint64_t slot, std::byte* data,
                       std::size_t bytes) {
  if (is_closed_) return poster.failed(Direction::kReceive, peer, kClosedHere);
  Channel& channel = channel_from(peer);
  touch_post(peer, rank_);
  Post* receive = fabric_.make_post(poster, slot, data, bytes, payload_);
  if (Post* send = channel.sends.take([&](const Post& p) { return p.slot == slot; })) {
    fabric_.match(channel, send, receive);
    return;
  }
  channel.receives.push(receive);
  if (channel.end_at != sim::kNever) fabric_.watch_end(channel);
}

void Endpoint::receive_any(Poster& poster, std::vector<int> peers, std::uint64_t slot,
                           std::byte* data, std::size_t bytes) {
  if (is_closed_) return poster.failed(Direction::kReceive, -1, kClosedHere);
  fabric_.simulation_.note_uncovered("a receive from any of several ranks");
  Channel* first = nullptr;
  std::uint64_t first_number = 0;
  for (const int peer : peers) {
    Channel& channel = channel_from(peer);
    const Post* send = channel.sends.first();
    while (send != nullptr && send->slot != slot) send = send->next;
    if (send == nullptr || (first != nullptr && first_number < send->number)) continue;
    first = &channel;
    first_number = send->number;
  }
  Post* receive = fabric_.make_post(poster, slot, data, bytes, payload_);
  if (first != nullptr) {
    fabric_.match(*first, first->sends.take([&](const Post& p) { return p.slot == slot; }),
                  receive);
    return;
  }
  for (const int peer : peers) ++channel_from(peer).any_receives;
  any_receives_.push_back({receive, std::move(peers)});
}

// Removes the first one that `matches` accepts; null when there is none.
template <class Predicate>
Post* Endpoint::take_any_receive(Predicate&& matches) {
  const auto place = std::ranges::find_if(any_receives_, matches);
  if (place == any_receives_.end()) return nullptr;
  Post* receive = place->post;
  for (const int peer : place->peers) --channel_from(peer).any_receives;
  any_receives_.erase(place);
  return receive;
}

void Endpoint::forget(Poster& poster) {
  touch();
  fabric_.depart_early();
  const auto is_its = [&poster](const Post& post) { return post.poster == &poster; };
  for (Channel* channel : outbound_.in_order()) {
    while (Post* post = channel->sends.take(is_its)) fabric_.free_post(post);
    for (Post* post = channel->flying.first(); post != nullptr; post = post->next) {
      if (is_its(*post->counterpart)) fabric_.release_sender(*channel, *post);
    }
  }
  const auto is_its_any = [&](const AnyReceive& any) { return is_its(*any.post); };
  while (Post* post = take_any_receive(is_its_any)) fabric_.free_post(post);
  for (Channel* channel : inbound_.in_order()) {
    while (Post* post = channel->receives.take(is_its)) fabric_.free_post(post);
    for (Post* post = channel->flying.first(); post != nullptr; post = post->next) {
      if (is_its(*post)) post->poster = nullptr;
    }
  }
}

void Endpoint::close() {
  touch();
  fabric_.simulation_.touch(group_.key, sim::Access::kAdd);
  if (is_closed_) return;
  fabric_.depart_early();
  is_closed_ = true;
  closed_at_ = fabric_.simulation_.now();
  close_order_ = ++fabric_.closed_count_;
  fabric_.simulation_.record(sim::EventKind::kClose, world_rank_, -1, group_.id);
  if (fabric_.whole_calls_ != nullptr) fabric_.whole_calls_->closed(*this);
  for (Channel* channel : outbound_.in_order()) fabric_.close_sender(*channel, kClosedHere);
  for (Channel* channel : inbound_.in_order()) fabric_.close_receiver(*channel, kClosedHere);
  while (Post* post = take_any_receive([](const AnyReceive&) { return true; })) {
    post->poster->failed(Direction::kReceive, -1, kClosedHere);
    fabric_.free_post(post);
  }
}

Fabric::Fabric(sim::Simulation& simulation, sim::Network& network, PayloadMode payload)
    : simulation_(simulation),
      network_(network),
      payload_(payload),
      departures_(simulation.ranks()),
      endpoints_(static_cast<std::size_t>(simulation.ranks())) {
  simulation.on_crash([this](int rank) {
    for (Endpoint* endpoint : endpoints_[static_cast<std::size_t>(rank)]) endpoint->close();
  });
  simulation.explain_events(this, [](std::uint64_t argument, sim::RankMarks& ranks) {
    const Channel& channel = to_channel(argument);
    ranks.add(channel.world_from);
    ranks.add(channel.world_to);
  });
}

Group& Fabric::group(std::uint64_t parent, const std::string& name,
                     const std::vector<int>& members) {
  const auto [place, is_new] = groups_.try_emplace({parent, name});
  Group& group = place->second;
  if (is_new) {
    group.id = groups_.size();
    group.key = key_of(name, members);
    group.members = members;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      group.endpoints.emplace_back(*this, group, static_cast<int>(rank), members[rank]);
      Endpoint& endpoint = group.endpoints.back();
      endpoints_[static_cast<std::size_t>(members[rank])].push_back(&endpoint);
      if (simulation_.has_crashed(members[rank])) endpoint.close();
    }
  }
  if (group.members != members) {
    throw CommError(CommErrorKind::kMismatch,
                    "sim: the ranks have different members in the group \"" + name + "\", here " +
                        list_of(members) + " and elsewhere " + list_of(group.members) +
                        " of the world; where they passed one color, a message was damaged on its "
                        "way");
  }
  return group;
}

Channel& Fabric::make_channel(Endpoint& sender, Endpoint& receiver) {
  Channel& channel = channels_.emplace_back();
  channel.group = sender.group_.key;
  channel.sender = &sender;
  channel.receiver = &receiver;
  channel.from = sender.rank_;
  channel.to = receiver.rank_;
  channel.world_from = sender.world_rank_;
  channel.world_to = receiver.world_rank_;
  sender.outbound_.add(receiver.rank_, channel);
  receiver.inbound_.add(sender.rank_, channel);
  for (const Endpoint* end : {&sender, &receiver}) {
    if (!end->is_closed_) continue;
    const auto& link = network_.link(channel.world_from, channel.world_to);
    channel.end_at = std::min(channel.end_at, end->closed_at_ + link.latency);
  }
  return channel;
}

Post* Fabric::make_post(Poster& poster, std::uint64_t slot, std::byte* data, std::size_t bytes,
                        PayloadMode payload) {
  Post* post = free_posts_;
  if (post == nullptr) {
    post = &posts_.emplace_back();
  } else {
    free_posts_ = post->next;
  }
  *post = {.poster = &poster, .data = data, .bytes = bytes, .slot = slot, .payload = payload};
  return post;
}

void Fabric::free_post(Post* post) { post->next = std::exchange(free_posts_, post); }

void Fabric::match(Channel& channel, Post* send, Post* receive) {
  if (send->bytes != receive->bytes) {
    return refuse(channel, send, receive, size_mismatch(channel, send->bytes, receive->bytes));
  }
  for (const int rank : {channel.world_from, channel.world_to}) {
    if (whole_calls_ != nullptr && whole_calls_->holds(rank)) {
      return refuse(channel, send, receive, ports_taken(rank));
    }
  }
  receive->counterpart = send;
  if (departures_.empty()) {
    simulation_.at_end_of_time(sim::action_of<&Fabric::depart_all>(*this));
  }
  departures_.add(channel, receive);
}

// Neither side can have this.
void Fabric::refuse(const Channel& channel, Post* send, Post* receive, const Failure& failure) {
  simulation_.touch(sim::kEverything, sim::Access::kWrite);
  send->poster->failed(Direction::kSend, channel.to, failure);
  receive->poster->failed(Direction::kReceive, channel.from, failure);
  free_post(send);
  free_post(receive);
}

void Fabric::depart_all(std::uint64_t) {
  departures_.take_all([this](Channel& channel, Post* receive) { depart(channel, receive); });
}

// Before an end closes or a buffer goes away, so that both know what is in flight.
void Fabric::depart_early() {
  if (departures_.empty()) return;
  simulation_.touch(sim::kEverything, sim::Access::kWrite);
  depart_all();
}

void Fabric::depart(Channel& channel, Post* receive) {
  const Post* send = receive->counterpart;
  channel.flying.push(receive);
  const sim::Passage passage =
      network_.send(channel.world_from, channel.world_to, send->bytes, channel.flow,
                    sim::action_of<&Fabric::arrive>(*this, to_argument(channel)));
  receive->is_lost = passage.arrival == sim::kNever;
  receive->is_damaged = !receive->is_lost && (passage.bytes < send->bytes || passage.flipped_bit);
  if (receive->is_damaged) damages_[receive] = passage;
}

bool Fabric::is_cut_short(const Post& receive) const {
  return receive.is_damaged && damages_.at(&receive).bytes < receive.bytes;
}

void Fabric::deliver_bytes(const Channel& channel, const Post& receive) {
  const Post& send = *receive.counterpart;
  if (receive.bytes == 0 || is_cut_short(receive)) return;
  const std::uint64_t bit = receive.is_damaged ? damages_.at(&receive).flipped_bit.value() : kNoBit;
  const PayloadMode payload = std::max(send.payload, receive.payload);
  if (payload == PayloadMode::kReal) {
    std::memcpy(receive.data, send.data, receive.bytes);
    if (bit != kNoBit) receive.data[bit / 8] ^= std::byte{1} << (bit % 8);
  } else if (payload == PayloadMode::kHashed) {
    const std::uint64_t hash = channel.sender->hashes_.of(send.data, send.bytes);
    channel.receiver->hashes_.set(receive.data, receive.bytes,
                                  bit == kNoBit ? hash : sim::mix64(hash + bit + 1));
  }
}

// The sender's memory goes away before the bytes have arrived: hand over now what will arrive.
void Fabric::release_sender(const Channel& channel, Post& receive) {
  if (receive.poster != nullptr && !receive.is_lost) deliver_bytes(channel, receive);
  receive.counterpart->poster = nullptr;
}

void Fabric::arrive(std::uint64_t argument) {
  Channel& channel = to_channel(argument);
  Post* receive = channel.flying.take([](const Post& post) { return !post.is_lost; });
  DDPROOF_CHECK(receive != nullptr);
  Post* send = receive->counterpart;
  const int from = channel.from, to = channel.to;
  const std::size_t bytes = receive->is_damaged ? damages_.at(receive).bytes : receive->bytes;
  network_.arrived(channel.world_from, channel.world_to, bytes);
  Poster* const sender = send->poster;
  Poster* const receiver = receive->poster;
  if (is_cut_short(*receive)) {
    const Failure failure = size_mismatch(channel, bytes, receive->bytes);
    if (sender != nullptr) sender->failed(Direction::kSend, to, failure);
    if (receiver != nullptr) receiver->failed(Direction::kReceive, from, failure);
  } else {
    if (sender != nullptr && receiver != nullptr) deliver_bytes(channel, *receive);
    if (sender != nullptr) sender->completed(Direction::kSend, to);
    if (receiver != nullptr) receiver->completed(Direction::kReceive, from);
  }
  if (receive->is_damaged) damages_.erase(receive);
  free_post(send);
  free_post(receive);
}

void Fabric::fail_and_free(PostList& posts, Direction direction, int peer, const Failure& failure) {
  while (Post* post = posts.take([](const Post&) { return true; })) {
    if (post->poster != nullptr) post->poster->failed(direction, peer, failure);
    free_post(post);
  }
}

void Fabric::close_sender(Channel& channel, const Failure& failure) {
  const int peer = channel.to;
  fail_and_free(channel.sends, Direction::kSend, peer, failure);
  for (Post* post = channel.flying.first(); post != nullptr; post = post->next) {
    Poster* poster = post->counterpart->poster;
    if (poster == nullptr) continue;
    release_sender(channel, *post);
    poster->failed(Direction::kSend, peer, failure);
  }
  const auto& link = network_.link(channel.world_from, channel.world_to);
  const sim::Time end_at = std::max(simulation_.now() + link.latency, channel.flow.last_arrival);
  channel.end_at = std::min(channel.end_at, end_at);
  watch_end(channel);
}

void Fabric::close_receiver(Channel& channel, const Failure& failure) {
  const int peer = channel.from;
  fail_and_free(channel.receives, Direction::kReceive, peer, failure);
  for (Post* post = channel.flying.first(); post != nullptr; post = post->next) {
    if (Poster* poster = std::exchange(post->poster, nullptr)) {
      poster->failed(Direction::kReceive, peer, failure);
    }
  }
  const auto& link = network_.link(channel.world_from, channel.world_to);
  channel.end_at = std::min(channel.end_at, simulation_.now() + link.latency);
  watch_end(channel);
}

// An event for the survivor, if it waits on the channel.
void Fabric::watch_end(Channel& channel) {
  if (channel.sends.empty() && channel.receives.empty() && channel.flying.empty()) return;
  simulation_.schedule(std::max(channel.end_at, simulation_.now()),
                       sim::action_of<&Fabric::end>(*this, to_argument(channel)));
}

void Fabric::end(std::uint64_t argument) {
  Channel& channel = to_channel(argument);
  const int from = channel.from, to = channel.to;
  const auto closed_by = [](int rank) {
    return Failure{false, "Connection closed by peer [rank " + std::to_string(rank) + "]"};
  };
  fail_and_free(channel.sends, Direction::kSend, to, closed_by(to));
  fail_and_free(channel.receives, Direction::kReceive, from, closed_by(from));
  while (Post* post = channel.flying.take([](const Post& p) { return p.is_lost; })) {
    Post* send = post->counterpart;
    if (send->poster != nullptr) send->poster->failed(Direction::kSend, to, closed_by(to));
    if (post->poster != nullptr) post->poster->failed(Direction::kReceive, from, closed_by(from));
    free_post(send);
    free_post(post);
  }
}

std::vector<int> Fabric::crashed_members(const Group& group) const {
  std::vector<int> result;
  for (const Endpoint& endpoint : group.endpoints) {
    if (simulation_.has_crashed(endpoint.world_rank())) result.push_back(endpoint.rank());
  }
  return result;
}

int Fabric::first_closed(const Group& group) {
  const Endpoint* first = nullptr;
  for (const Endpoint& endpoint : group.endpoints) {
    if (!endpoint.is_closed_) continue;
    if (first == nullptr || endpoint.close_order_ < first->close_order_) first = &endpoint;
  }
  return first == nullptr ? -1 : first->rank();
}

}  // namespace ddproof
