#include "backends/membership/whereabouts.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

namespace ddproof {
namespace {

void write(std::ostream& out, const StoreGroup& group, bool compares, const std::string& call) {
  out << group.prefix << ' ' << compares << ' ' << group.world_ranks.size();
  for (const int rank : group.world_ranks) out << ' ' << rank;
  out << ' ' << call.size() << ' ' << call << '\n';
}

bool read(std::istream& in, Whereabout& at) {
  std::size_t ranks = 0;
  std::size_t bytes = 0;
  in >> at.prefix >> at.compares >> ranks;
  for (; in && at.world_ranks.size() < ranks;) in >> at.world_ranks.emplace_back();
  in >> bytes;
  in.get();
  for (; in && at.call.size() < bytes;) at.call += static_cast<char>(in.get());
  return static_cast<bool>(in);
}

}  // namespace

void Whereabouts::enter(const StoreGroup& group, const Call& call) {
  const bool compares = call.on_behalf_of != nullptr && !is_point_to_point(call.op);
  Stay stay{&group, compares, call.describe()};
  const MonitorLock lock(*monitor_);
  stays_.insert_or_assign(group.prefix, std::move(stay));
}

void Whereabouts::leave(const StoreGroup& group) {
  const MonitorLock lock(*monitor_);
  stays_.erase(group.prefix);
}

std::string Whereabouts::told() const {
  std::ostringstream out;
  const MonitorLock lock(*monitor_);
  for (const auto& [prefix, stay] : stays_) write(out, *stay.group, stay.compares, stay.call);
  return out.str();
}

std::vector<Whereabout> read_whereabouts(const std::string& told) {
  std::istringstream in(told);
  std::vector<Whereabout> all;
  for (Whereabout at; read(in, at); at = {}) all.push_back(at);
  return all;
}

std::optional<Whereabout> find_crossed_call(const StoreGroup& group,
                                            const std::vector<int>& missing,
                                            const WhereRanksAre& where) {
  std::set<int> there;  // ranks of the world
  const Whereabout* other = nullptr;
  for (const int rank : missing) {
    const auto found = where.find(rank);
    if (found == where.end() || found->second.size() != 1) return std::nullopt;
    const Whereabout& at = found->second.front();
    if (other == nullptr) other = &at;
    if (!at.compares || at.prefix == group.prefix || at.prefix != other->prefix) {
      return std::nullopt;
    }
    there.insert(group.world_ranks[static_cast<std::size_t>(rank)]);
  }
  const auto is_there = [&](int rank) { return there.contains(rank); };
  const auto is_known = [&](int rank) {
    return std::ranges::find(group.world_ranks, rank) != group.world_ranks.end();
  };
  if (!std::ranges::all_of(other->world_ranks, is_known)) return std::nullopt;
  if (std::ranges::all_of(other->world_ranks, is_there)) return std::nullopt;
  return *other;
}

}  // namespace ddproof
