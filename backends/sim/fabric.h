// What carries Gloo's messages between simulated ranks: rendezvous, as Gloo over TCP does it. A
// transfer begins when both the send and the receive of one slot are posted, and ends both when
// its last byte has arrived; nothing is buffered on the way.
//
// Invariants:
//   Order   Posts of one channel and slot match in the order in which they were made, and
//           transfers of one channel arrive in the order in which they began. A receive from any of
//           several peers takes the oldest send of theirs; a send prefers a receive from its rank.
//   End     When an endpoint closes or its rank dies, what is in flight still arrives; then the
//           peers' posts that wait for it fail, and all later ones. A receive from any of several
//           peers goes on waiting, also when all of them have closed, as with Gloo over TCP.
//   Ports   What begins at one point in time leaves at its end, by turns: the first transfer of
//           each rank, lower ranks first, then the second of each, a rank's own in the order in
//           which it posted the sends. So the order in which fibers ran never shows in a time.
//   Memory  A buffer that goes away while a transfer from it is in flight has its bytes copied at
//           once; one that would have received is left alone.
//   Faults  Messages of a channel are numbered and checked for their length, as TCP does, and for
//           nothing else. So a dropped one leaves both sides waiting: nobody sends it again. The
//           second copy of a duplicate costs time and is thrown away. When a truncated one arrives,
//           both sides fail as with sizes that differ, and the receiver's memory stays as it was.
//           A flipped bit gets into the receiver's memory, and nobody is told.
//
// A group is a set of ranks that are connected with each other, an endpoint is one rank's place in
// it, a channel one direction between two endpoints. Channels are made when first used, so a world
// of 4,096 ranks costs what it uses, not its square.
// Threads: that of the Simulation. The Fabric must outlive everything made with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/gloo/gloo_connection.h"
#include "backends/sim/channel.h"
#include "backends/sim/departures.h"
#include "backends/sim/hashes.h"
#include "backends/sim/routes.h"
#include "simulator/network.h"
#include "simulator/simulation.h"

namespace ddproof {

class Endpoint;
class Fabric;
class WholeCalls;

// What a call has for one rank: its smaller buffer, the same on every rank.
std::size_t bytes_of_rank(const Call& call);

// The ranks of one Gloo context, and what is known about its failure.
struct Group {
  std::uint64_t id = 0;
  sim::ObjectKey key = 0;          // what is known of its failure
  std::vector<int> members;        // world ranks, by rank of the group
  std::deque<Endpoint> endpoints;  // by rank of the group
  std::optional<Finding> finding;  // the first one
};

// One rank's place in a group.
class Endpoint {
 public:
  Endpoint(Fabric& fabric, Group& group, int rank, int world_rank)
      : fabric_(fabric), group_(group), rank_(rank), world_rank_(world_rank) {}
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  int rank() const { return rank_; }
  int world_rank() const { return world_rank_; }
  Group& group() { return group_; }
  PayloadMode payload() const { return payload_; }
  // The world ranks that must all come to the running call before one of them can leave it; null:
  // it is no comparison of calls.
  const std::vector<int>* gathers() const { return is_comparison_ ? &group_.members : nullptr; }
  Fabric& fabric() { return fabric_; }
  bool is_closed() const { return is_closed_; }
  int world_rank_of(int peer) const { return group_.members[static_cast<std::size_t>(peer)]; }

  // Both fail at once, through `poster`, when this endpoint is closed.
  void send(Poster& poster, int peer, std::uint64_t slot, std::byte* data, std::size_t bytes);
  void receive(Poster& poster, int peer, std::uint64_t slot, std::byte* data, std::size_t bytes);
  // From whichever of `peers` sends first.
  void receive_any(Poster& poster, std::vector<int> peers, std::uint64_t slot, std::byte* data,
                   std::size_t bytes);
  // Forgets the posts of a poster that goes away before they are done.
  void forget(Poster& poster);
  // Fails all posts of this endpoint, and after what is in flight those that peers made for it.
  // Idempotent.
  void close();

  // States that the running step changes more here than posts do.
  void touch() const;

  // What becomes of the bytes of this rank's posts from now on, and of one call's results. Between
  // calls payloads are real.
  Payload& begin_call(const Call& call);
  void end_call(const Call& call, bool completed);
  // For a call of which nothing but its messages counts.
  Payload& begin_size_only();

  // How many of this rank's tasks wait in this group now.
  int waiting = 0;
  // How many collective calls it has begun.
  std::uint64_t collectives() const { return collectives_; }

 private:
  friend class Fabric;
  struct AnyReceive {
    Post* post;
    std::vector<int> peers;
  };
  sim::ObjectKey key() const { return group_.key + 1 + static_cast<sim::ObjectKey>(rank_); }
  void touch_post(int from, int to) const;
  Channel& channel_to(int peer);
  Channel& channel_from(int peer);
  template <class Predicate>
  Post* take_any_receive(Predicate&& matches);

  Fabric& fabric_;
  Group& group_;
  int rank_;
  int world_rank_;
  PayloadMode payload_ = PayloadMode::kReal;
  bool is_comparison_ = false;
  std::uint64_t collectives_ = 0;
  bool is_closed_ = false;
  sim::Time closed_at_ = 0;
  std::uint64_t close_order_ = 0;
  Hashes hashes_;
  HashedPayload hashed_payload_{hashes_};
  NoPayload no_payload_;
  Payload real_payload_;
  Routes outbound_;
  Routes inbound_;
  std::vector<AnyReceive> any_receives_;  // that wait, in the order in which they were posted
};

class Fabric {
 public:
  Fabric(sim::Simulation& simulation, sim::Network& network,
         PayloadMode payload = PayloadMode::kReal);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // The group with this name under `parent` (0: the world), made when first asked for. `members`
  // are world ranks in the order of their ranks in the group; throws CommError{kMismatch} when they
  // are not the same for all that ask.
  Group& group(std::uint64_t parent, const std::string& name, const std::vector<int>& members);

  sim::Simulation& simulation() { return simulation_; }
  const sim::Network& network() const { return network_; }
  // Transfers have begun at this time that have not left.
  bool has_departures() const { return !departures_.empty(); }
  // Null, or what runs collectives as one event. Borrowed.
  WholeCalls* whole_calls() const { return whole_calls_; }
  void set_whole_calls(WholeCalls* whole_calls) { whole_calls_ = whole_calls; }
  // The group's crashed members, as ranks of the group, ascending.
  std::vector<int> crashed_members(const Group& group) const;
  // The member whose endpoint closed first; -1: none.
  static int first_closed(const Group& group);

 private:
  friend class Endpoint;
  Channel& make_channel(Endpoint& sender, Endpoint& receiver);
  Post* make_post(Poster& poster, std::uint64_t slot, std::byte* data, std::size_t bytes,
                  PayloadMode payload);
  void free_post(Post* post);
  void match(Channel& channel, Post* send, Post* receive);
  void refuse(const Channel& channel, Post* send, Post* receive, const Failure& failure);
  void depart(Channel& channel, Post* receive);
  void depart_all(std::uint64_t = 0);
  void depart_early();
  void arrive(std::uint64_t channel);
  void close_sender(Channel& channel, const Failure& failure);
  void close_receiver(Channel& channel, const Failure& failure);
  void watch_end(Channel& channel);
  void end(std::uint64_t channel);
  void deliver_bytes(const Channel& channel, const Post& receive);
  bool is_cut_short(const Post& receive) const;
  void release_sender(const Channel& channel, Post& receive);
  void fail_and_free(PostList& posts, Direction direction, int peer, const Failure& failure);

  sim::Simulation& simulation_;
  sim::Network& network_;
  PayloadMode payload_;
  WholeCalls* whole_calls_ = nullptr;
  Departures departures_;
  std::map<std::pair<std::uint64_t, std::string>, Group> groups_;
  std::vector<std::vector<Endpoint*>> endpoints_;  // by world rank
  std::uint64_t closed_count_ = 0;
  std::uint64_t send_count_ = 0;                 // ever
  std::map<const Post*, sim::Passage> damages_;  // by receive
  std::deque<Channel> channels_;
  std::deque<Post> posts_;
  Post* free_posts_ = nullptr;  // a stack: the last one freed is still in the cache
};

}  // namespace ddproof
