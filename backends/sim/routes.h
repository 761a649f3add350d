// One endpoint's channels of one direction, by the rank at the other end: a hash table with open
// addressing, because with thousands of ranks a look-up costs what its cache misses cost, here one.
//
// Threads: those of the Simulation.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "backends/sim/channel.h"

namespace ddproof {

class Routes {
 public:
  // Null: none.
  Channel* find(int peer) const {
    return entries_.empty() ? nullptr : entries_[place_of(peer)].channel;
  }

  // Requires: no channel of `peer` is there.
  void add(int peer, Channel& channel) {
    if (4 * ++count_ > 3 * entries_.size()) grow();
    entries_[place_of(peer)] = {peer, &channel};
  }

  // By rank, however they were added.
  std::vector<Channel*> in_order() const {
    std::vector<Entry> entries;
    for (const Entry& entry : entries_) {
      if (entry.channel != nullptr) entries.push_back(entry);
    }
    std::ranges::sort(entries, {}, &Entry::peer);
    std::vector<Channel*> channels;
    for (const Entry& entry : entries) channels.push_back(entry.channel);
    return channels;
  }

 private:
  struct Entry {
    int peer = 0;
    Channel* channel = nullptr;  // null: free
  };

  // Where the peer's entry is, or the free one where it would be. Requires: there are entries.
  std::size_t place_of(int peer) const {
    // Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, section 6.4.
    const std::uint32_t hash = static_cast<std::uint32_t>(peer) * 0x9E3779B1U;
    std::size_t place = hash >> (std::countl_zero(static_cast<std::uint32_t>(entries_.size())) + 1);
    while (entries_[place].channel != nullptr && entries_[place].peer != peer) {
      place = (place + 1) % entries_.size();
    }
    return place;
  }

  void grow() {
    const std::vector<Entry> old =
        std::exchange(entries_, std::vector<Entry>(std::max<std::size_t>(4, 2 * entries_.size())));
    for (const Entry& entry : old) {
      if (entry.channel != nullptr) entries_[place_of(entry.peer)] = entry;
    }
  }

  std::vector<Entry> entries_;  // a power of two of them, at least a quarter of them free
  std::size_t count_ = 0;
};

}  // namespace ddproof
