#include "backends/nccl/monitored_barrier.h"

#include <string>
#include <utility>
#include <vector>

#include "backends/api/list_of.h"

namespace ddproof::nccl {
namespace {

// All ranks ask one store.
constexpr Duration kStorePause = std::chrono::milliseconds(20);

std::string prefix_of(const StoreGroup& group, std::uint64_t number) {
  return group.prefix + "/monitored/" + std::to_string(number);
}

// By rank; rank 0's holds the verdict.
std::vector<std::string> keys_of(const StoreGroup& group, std::uint64_t number) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < group.size(); ++rank) {
    keys.push_back(prefix_of(group, number) + "/" + std::to_string(rank));
  }
  return keys;
}

std::vector<int> missing_now(const StoreWorld& world, const std::vector<std::string>& keys) {
  const auto values = world.store.multi_get(keys);
  std::vector<int> missing;
  for (int rank = 1; rank < static_cast<int>(values.size()); ++rank) {
    if (!values[static_cast<std::size_t>(rank)]) missing.push_back(rank);
  }
  return missing;
}

// Rank 0: who has not come when patience ends.
std::vector<int> collect(const StoreWorld& world, const std::vector<std::string>& keys,
                         const Patience& patience) {
  std::vector<int> missing;
  try {
    patience.until(
        "the ranks of a monitored barrier",
        [&] {
          missing = missing_now(world, keys);
          return missing.empty();
        },
        kStorePause);
  } catch (const Interrupted& interrupted) {
    if (!interrupted.timed_out) throw;
  }
  return missing;
}

// One letter per rank: "m" is missing.
std::string encode(const std::vector<int>& missing, int size) {
  std::string verdict(static_cast<std::size_t>(size), '.');
  for (const int rank : missing) verdict[static_cast<std::size_t>(rank)] = 'm';
  return verdict;
}

std::vector<int> decode(const std::string& verdict) {
  std::vector<int> missing;
  for (std::size_t rank = 0; rank < verdict.size(); ++rank) {
    if (verdict[rank] == 'm') missing.push_back(static_cast<int>(rank));
  }
  return missing;
}

}  // namespace

std::optional<Finding> monitored_barrier(const StoreWorld& world, const StoreGroup& group,
                                         const Call& call, std::uint64_t number,
                                         const Patience& patience) {
  const std::vector<std::string> keys = keys_of(group, number);
  std::vector<int> missing;
  if (group.rank == 0) {
    missing = collect(world, keys, patience);
    if (missing.empty()) {
      for (const std::string& key : keys_of(group, number - 1)) world.store.remove(key);
    }
    world.store.set(keys[0], encode(missing, group.size()));
  } else {
    world.store.set(keys[static_cast<std::size_t>(group.rank)], "");
    // Rank 0 may have come a whole timeout after this rank, and then waits as long for the others.
    std::optional<std::string> verdict;
    patience.for_as_long_again().until(
        "rank 0's verdict",
        [&] {
          verdict = world.store.try_get(keys[0]);
          return verdict.has_value();
        },
        kStorePause);
    missing = decode(*verdict);
  }
  if (missing.empty()) return std::nullopt;
  if (!call.wait_all_ranks) missing.erase(missing.begin() + 1, missing.end());
  const std::string what = did_not_come(missing, call.timeout);
  return Finding{CommErrorKind::kTimeout, std::move(missing), what};
}

}  // namespace ddproof::nccl
