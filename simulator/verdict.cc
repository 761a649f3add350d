#include "simulator/verdict.h"

#include <algorithm>
#include <map>

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

std::string describe(const RankWait& wait) {
  std::string text = "rank " + std::to_string(wait.rank) + " waits in " + wait.what;
  if (!wait.site.empty() && !wait.what.ends_with(wait.site)) text += " at " + wait.site;
  if (wait.ranks.empty()) return text;
  return text + (wait.any && wait.ranks.size() > 1 ? " for any of " : " for ") +
         list_of(wait.ranks);
}

}  // namespace

std::string format_site(std::string_view file, int line) {
  if (file.empty()) return "";
  const auto slash = file.rfind('/');
  if (slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string(file) + ":" + std::to_string(line);
}

std::string describe_deadlock(Time now, std::vector<RankWait> waits, const DeadlockCause& cause,
                              std::span<const std::string_view> fates) {
  for (RankWait& wait : waits) {  // two posts of a rank may wait for the same one
    std::ranges::sort(wait.ranks);
    wait.ranks.erase(std::unique(wait.ranks.begin(), wait.ranks.end()), wait.ranks.end());
  }
  // By cores; what waits behind them comes last.
  std::map<int, std::size_t> core_of;
  for (std::size_t i = 0; i < cause.cores.size(); ++i) {
    for (const int rank : cause.cores[i]) core_of[rank] = i;
  }
  const std::size_t behind = cause.cores.size();
  const auto place_of = [&](const RankWait& wait) {
    const auto found = core_of.find(wait.rank);
    return found == core_of.end() ? behind : found->second;
  };
  std::ranges::stable_sort(waits, {}, place_of);
  std::string text = " at t=" + format_time(now) + ": ";
  for (std::size_t i = 0; i < waits.size() && i < kNamedMax; ++i) {
    if (i > 0) text += "; ";
    if (i > 0 && place_of(waits[i]) != place_of(waits[i - 1])) {
      const bool one = behind == 1 && cause.cores.front().size() == 1;
      text += place_of(waits[i]) < behind ? "besides " : one ? "behind it " : "behind them ";
    }
    text += describe(waits[i]);
  }
  if (waits.size() > kNamedMax) {
    text += "; " + std::to_string(waits.size() - kNamedMax) + " more wait";
  }
  for (std::size_t i = 0; i < cause.culprits.size() && i < kNamedMax; ++i) {
    const auto rank = static_cast<std::size_t>(cause.culprits[i]);
    text += "; rank " + std::to_string(rank) + " ";
    if (!cause.culprits_ended) {
      text += "called something else";
    } else {
      text += rank < fates.size() ? fates[rank] : "does not exist";
    }
  }
  return text;
}

std::string describe_liveness(Time now, const Liveness& liveness, bool nothing_can_happen,
                              const std::vector<LateRank>& late, std::size_t roots) {
  std::string text = nothing_can_happen ? "no progress is possible"
                                        : "no progress for " + format_time(liveness.within);
  text += " at t=" + format_time(now) + ", after the faults stopped at " +
          format_time(liveness.faults_stop) + ": ";
  for (std::size_t i = 0; i < late.size() && i < kNamedMax; ++i) {
    if (i > 0) text += "; ";
    if (i > 0 && i == roots) text += roots == 1 ? "behind it " : "behind them ";
    if (late[i].waits.empty()) text += "rank " + std::to_string(late[i].rank) + " runs";
    for (std::size_t w = 0; w < late[i].waits.size(); ++w) {
      text += (w > 0 ? " and " : "") + describe(late[i].waits[w]);
    }
    text += " since " + format_time(late[i].since);
  }
  if (late.size() > kNamedMax) {
    text += "; " + std::to_string(late.size() - kNamedMax) + " more make none";
  }
  return text;
}

}  // namespace ddproof::sim
