// What the Fabric keeps of one direction between two endpoints: posts and where they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/sim/payload_mode.h"
#include "simulator/network.h"
#include "simulator/step_observer.h"

namespace ddproof {

class Endpoint;

enum class Direction : std::uint8_t { kSend, kReceive };

struct Failure {
  bool is_mismatch = false;  // the two sides have different sizes; else a connection is gone
  std::string why;
};

// The owner of posts: a Gloo buffer.
class Poster {
 public:
  // The oldest post of this direction with `peer` (a rank of the group) is done. The sender's
  // rank, when the post was a receive from any of several.
  virtual void completed(Direction direction, int peer) = 0;
  // It will never be done. `peer` is -1 when it was one from any of several.
  virtual void failed(Direction direction, int peer, const Failure& failure) = 0;

 protected:
  ~Poster() = default;
};

// A wish to send or receive, until it is done. One cache line: there may be millions.
struct alignas(64) Post {
  Post* next = nullptr;
  Poster* poster = nullptr;  // null: gone, or told already
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t slot = 0;
  Post* counterpart = nullptr;  // in flight: the send that belongs to a receive
  std::uint64_t number = 0;     // a send: its place among those of the fabric
  bool is_lost = false;         // in flight, but a fault swallowed it
  PayloadMode payload = PayloadMode::kReal;
  bool is_damaged = false;  // in flight, and a fault changed what arrives: Fabric::damages_
};
static_assert(sizeof(Post) == 64);

// A queue of posts that owns none of them.
class PostList {
 public:
  bool empty() const { return first_ == nullptr; }
  Post* first() const { return first_; }
  void push(Post* post) {
    post->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = post;
    last_ = post;
  }
  // Removes the first one that `matches` accepts; null when there is none.
  template <class Predicate>
  Post* take(Predicate&& matches) {
    Post* before = nullptr;
    for (Post* post = first_; post != nullptr; before = post, post = post->next) {
      if (!matches(*post)) continue;
      (before == nullptr ? first_ : before->next) = post->next;
      if (last_ == post) last_ = before;
      post->next = nullptr;
      return post;
    }
    return nullptr;
  }

 private:
  Post* first_ = nullptr;
  Post* last_ = nullptr;
};

struct Channel {
  sim::ObjectKey group = 0;
  Endpoint* sender = nullptr;
  Endpoint* receiver = nullptr;
  // Ranks of the group and of the world, here because reading them from the endpoints would cost a
  // cache miss per message.
  int from = 0;
  int to = 0;
  int world_from = 0;
  int world_to = 0;
  sim::Flow flow;
  PostList sends;                  // that wait for a receive
  PostList receives;               // that wait for a send
  PostList flying;                 // receives whose bytes are on their way, with their sends
  int any_receives = 0;            // of the receiver's, those that also take what comes here
  sim::Time end_at = sim::kNever;  // when the survivor learns that the other end is closed
};

}  // namespace ddproof
