// The transfers that have begun at this point in time, in the order in which they leave: by turns,
// the first of each rank, lower ranks first, then the second of each; a rank's own by group, then
// in the order in which it posted the sends. So their order does not depend on when each was added.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/sim/channel.h"

namespace ddproof {

class Departures {
 public:
  explicit Departures(int ranks)
      : lists_(static_cast<std::size_t>(ranks)), waiting_((lists_.size() + 63) / 64) {}

  bool empty() const { return entries_.empty(); }

  // `receive` has its counterpart.
  void add(Channel& channel, Post* receive);

  // Calls `depart(channel, receive)` for each and forgets them. `depart` must not add any.
  template <class Depart>
  void take_all(Depart&& depart) {
    for (std::size_t left = entries_.size(); left > 0;) {
      for (std::size_t word = 0; word < waiting_.size(); ++word) {
        for (std::uint64_t bits = waiting_[word]; bits != 0; bits &= bits - 1, --left) {
          const Entry& entry =
              take_first(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
          depart(*entry.channel, entry.receive);
        }
      }
    }
    entries_.clear();
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Entry {
    Channel* channel;
    Post* receive;
    std::size_t next;
  };
  struct List {
    std::size_t first = kNone;
    std::size_t last = kNone;
  };

  static bool is_before(const Entry& a, const Entry& b);
  const Entry& take_first(std::size_t rank);

  std::vector<Entry> entries_;
  std::vector<List> lists_;             // by world rank of the sender
  std::vector<std::uint64_t> waiting_;  // a bit per rank: its list is not empty
};

}  // namespace ddproof
