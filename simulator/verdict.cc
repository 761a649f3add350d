#include "simulator/verdict.h"

#include <algorithm>
#include <set>

namespace ddproof::sim {
namespace {

constexpr std::size_t kNamedMax = 8;

std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == kNamedMax) return text + " and " + std::to_string(ranks.size() - i) + " more";
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

std::string format_site(std::string_view file, int line) {
  if (file.empty()) return "";
  const auto slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string(file) + ":" + std::to_string(line);
}

DeadlockText describe_deadlock(Time now, std::vector<WaitingRank> waiting,
                               std::span<const std::string_view> fates) {
  for (WaitingRank& w : waiting) {  // two tasks of a rank may wait for the same one
    std::ranges::sort(w.ranks);
    w.ranks.erase(std::ranges::unique(w.ranks).begin(), w.ranks.end());
  }
  std::set<int> is_waiting;
  std::set<int> culprits;
  for (const WaitingRank& w : waiting) is_waiting.insert(w.rank);
  for (const WaitingRank& w : waiting) {
    for (const int rank : w.ranks) {
      if (!is_waiting.contains(rank)) culprits.insert(rank);
    }
  }
  const auto waits_for_culprit = [&culprits](const WaitingRank& w) {
    return std::any_of(w.ranks.begin(), w.ranks.end(),
                       [&](int rank) { return culprits.contains(rank); });
  };
  std::stable_partition(waiting.begin(), waiting.end(), waits_for_culprit);

  DeadlockText result;
  result.text = "deadlock at t=" + format_time(now) + ": ";
  for (std::size_t i = 0; i < waiting.size() && i < kNamedMax; ++i) {
    const WaitingRank& w = waiting[i];
    if (i > 0) result.text += "; ";
    result.text += "rank " + std::to_string(w.rank) + " waits in " + w.what;
    if (!w.site.empty() && !w.what.ends_with(w.site)) result.text += " at " + w.site;
    if (!w.ranks.empty()) result.text += " for " + list_of(w.ranks);
  }
  if (waiting.size() > kNamedMax) {
    result.text += "; " + std::to_string(waiting.size() - kNamedMax) + " more wait";
  }
  for (const int rank : culprits) {
    if (result.culprits.size() < kNamedMax) {
      result.text += "; rank " + std::to_string(rank) + " ";
      const auto index = static_cast<std::size_t>(rank);
      result.text += index < fates.size() ? fates[index] : "does not exist";
    }
    result.culprits.push_back(rank);
  }
  return result;
}

}  // namespace ddproof::sim
