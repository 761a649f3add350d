#include "simulator/crossed_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace ddproof::sim {
namespace {

struct GatheringCall {
  std::vector<int> here;  // ascending
  std::vector<int> missing;
};

// By the group. What its ranks call need not be the same: that they would find out.
using Calls = std::map<const std::vector<int>*, GatheringCall>;

Calls calls_in(const std::vector<RankWait>& waits) {
  Calls calls;
  for (const RankWait& wait : waits) {
    if (wait.gathers != nullptr) calls[wait.gathers].here.push_back(wait.rank);
  }
  for (auto& [group, call] : calls) {
    std::ranges::sort(call.here);
    std::vector<int> everybody = *group;
    std::ranges::sort(everybody);
    std::ranges::set_difference(everybody, call.here, std::back_inserter(call.missing));
  }
  return calls;
}

}  // namespace

std::optional<std::vector<int>> find_crossed_calls(const std::vector<RankWait>& waits) {
  const Calls calls = calls_in(waits);
  std::map<int, std::vector<const RankWait*>> waits_of;
  for (const RankWait& wait : waits) waits_of[wait.rank].push_back(&wait);
  // Misses ranks, which all wait in `other`, one of them in nothing else.
  const auto is_held_by = [&](const GatheringCall& call, const GatheringCall& other) {
    return std::ranges::includes(other.here, call.missing) &&
           std::ranges::any_of(call.missing, [&](int rank) { return waits_of[rank].size() == 1; });
  };
  bool cross = false;
  std::set<int> odd;
  for (const auto& [group, call] : calls) {
    if (call.missing.empty()) continue;
    for (const RankWait* wait : waits_of[call.missing.front()]) {
      if (wait->gathers == nullptr || wait->gathers == group) continue;
      const GatheringCall& other = calls.at(wait->gathers);
      if (!is_held_by(call, other) || !is_held_by(other, call)) continue;
      cross = true;
      if (call.here.size() > call.missing.size()) {
        odd.insert(call.missing.begin(), call.missing.end());
      }
    }
  }
  if (!cross) return std::nullopt;
  return std::vector<int>(odd.begin(), odd.end());
}

}  // namespace ddproof::sim
