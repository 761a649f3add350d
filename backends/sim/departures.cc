#include "backends/sim/departures.h"

#include <tuple>

namespace ddproof {

void Departures::add(Channel& channel, Post* receive) {
  const auto rank = static_cast<std::size_t>(channel.world_from);
  List& list = lists_[rank];
  const std::size_t place = entries_.size();
  Entry& entry = entries_.emplace_back(Entry{&channel, receive, kNone});
  waiting_[rank / 64] |= std::uint64_t{1} << (rank % 64);
  if (list.first == kNone) {
    list = {place, place};
  } else if (is_before(entries_[list.last], entry)) {
    entries_[list.last].next = place;
    list.last = place;
  } else {
    std::size_t* link = &list.first;
    while (is_before(entries_[*link], entry)) link = &entries_[*link].next;
    entry.next = *link;
    *link = place;
  }
}

bool Departures::is_before(const Entry& a, const Entry& b) {
  const std::uint64_t number_a = a.receive->counterpart->number;
  const std::uint64_t number_b = b.receive->counterpart->number;
  return std::tie(a.channel->group, number_a) < std::tie(b.channel->group, number_b);
}

const Departures::Entry& Departures::take_first(std::size_t rank) {
  List& list = lists_[rank];
  const Entry& entry = entries_[list.first];
  list.first = entry.next;
  if (list.first == kNone) waiting_[rank / 64] &= ~(std::uint64_t{1} << (rank % 64));
  return entry;
}

}  // namespace ddproof
