#include "properties/scenario/replicas.h"

#include <algorithm>
#include <utility>

namespace ddproof::scenario {
namespace {

using Digests = std::vector<std::optional<std::uint64_t>>;

// The ranks that do not hold what more than half of those that hold something hold.
std::vector<int> odd_ranks(const Digests& digests) {
  const auto holders = std::ranges::count_if(digests, [](const auto& d) { return d.has_value(); });
  for (const auto& digest : digests) {
    if (!digest || 2 * std::ranges::count(digests, digest) <= holders) continue;
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < digests.size(); ++rank) {
      if (digests[rank] && digests[rank] != digest) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }
  return {};
}

}  // namespace

Replicas::Replicas(int world_size)
    : world_size_(static_cast<std::size_t>(world_size)),
      states_(make_entry("parameters or momentum after training", world_size_)) {}

Replicas::Entry Replicas::make_entry(const std::string& what, std::size_t size) const {
  return {.what = what, .digests = Digests(world_size_), .missing = size};
}

void Replicas::add(Entry& entry, int rank, std::uint64_t digest) {
  if (std::exchange(entry.is_first, false)) entry.first = digest;
  --entry.missing;
  entry.alike = entry.alike && digest == entry.first;
  entry.digests[static_cast<std::size_t>(rank)] = digest;
}

void Replicas::add_result(int group, int size, int rank, const std::string& what,
                          std::uint64_t digest) {
  const auto index = static_cast<std::size_t>(group + 1);
  if (index >= counts_.size()) counts_.resize(index + 1, std::vector<std::int64_t>(world_size_));
  const std::int64_t number = counts_[index][static_cast<std::size_t>(rank)]++;
  const auto [place, is_new] = results_.try_emplace({number, group});
  Entry& entry = place->second;
  if (is_new) entry = make_entry(what, static_cast<std::size_t>(size));
  add(entry, rank, digest);
  if (entry.missing == 0 && entry.alike) results_.erase(place);
}

void Replicas::add_state(int rank, std::uint64_t digest) { add(states_, rank, digest); }

std::optional<Divergence> Replicas::divergence() const {
  for (const auto& [number, entry] : results_) {
    if (!entry.alike) return Divergence{entry.what, odd_ranks(entry.digests)};
  }
  if (!states_.alike) return Divergence{states_.what, odd_ranks(states_.digests)};
  return std::nullopt;
}

}  // namespace ddproof::scenario
