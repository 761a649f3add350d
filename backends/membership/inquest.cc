#include "backends/membership/inquest.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include "backends/api/list_of.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;

// A process that dies is noticed within a few milliseconds, a rank that has not noticed the
// failure after this long is not in the call.
constexpr Duration kPatience = milliseconds(400);
constexpr Duration kPollInterval = milliseconds(5);

// The store's answers are waited for until this long after the start.
constexpr Duration kExplainTimeout = milliseconds(600);
constexpr Duration kPublishTimeout = milliseconds(500);

// "<kind> <number of culprits> <culprits...> <text>"
std::string encode(const Finding& finding) {
  std::ostringstream out;
  out << static_cast<int>(finding.kind) << ' ' << finding.culprits.size();
  for (int rank : finding.culprits) out << ' ' << rank;
  out << ' ' << finding.what;
  return out.str();
}

Finding decode(const std::string& text) {
  std::istringstream in(text);
  int kind = 0;
  std::size_t count = 0;
  Finding finding;
  in >> kind >> count;
  finding.kind = static_cast<CommErrorKind>(kind);
  finding.culprits.resize(count);
  for (int& rank : finding.culprits) in >> rank;
  in.get();
  finding.what.assign(std::istreambuf_iterator<char>(in), {});
  return finding;
}

// "; rank 2 is in barrier #3 at x.cc:9"; of a few of them.
std::string told(const WhereRanksAre& where) {
  constexpr int kToldMax = 4;
  std::string text;
  int count = 0;
  for (const auto& [rank, calls] : where) {
    if (count++ == kToldMax) break;
    text += "; rank " + std::to_string(rank) + " is in " + (calls.empty() ? "no call" : "");
    for (const Whereabout& at : calls) text += (&at == &calls.front() ? "" : " and ") + at.call;
  }
  return text;
}

// The places of those ranks of the world that are in a group.
std::vector<int> places_of(const std::set<int>& ranks, const std::vector<int>& group) {
  std::vector<int> places;
  for (int place = 0; place < static_cast<int>(group.size()); ++place) {
    if (ranks.contains(group[static_cast<std::size_t>(place)])) places.push_back(place);
  }
  return places;
}

}  // namespace

Finding Inquest::explain(const Symptom& symptom) {
  try {
    const auto store = world_.store.answering_by(world_.runtime.now() + kExplainTimeout);
    return investigate(*store, symptom);
  } catch (const std::exception& error) {  // the store is gone too
    return without_store(symptom, error.what());
  }
}

Finding Inquest::without_store(const Symptom& symptom, const std::string& error) const {
  const auto host = world_.store_host ? std::ranges::find(group_.world_ranks, *world_.store_host)
                                      : group_.world_ranks.end();
  const int rank = static_cast<int>(host - group_.world_ranks.begin());
  if (host != group_.world_ranks.end() && rank != group_.rank) {
    return rank_is_lost(rank, "the store that it hosts does not answer");
  }
  const auto kind = symptom.timed_out ? CommErrorKind::kTimeout : CommErrorKind::kPeerLost;
  return {kind, {}, symptom.detail + "; the store cannot say who is lost: " + error};
}

void Inquest::publish(const Finding& finding) {
  try {
    agree_on(*world_.store.answering_by(world_.runtime.now() + kPublishTimeout), finding);
  } catch (const std::exception&) {
    // The store is gone: the peers will find out by themselves.
  }
}

Finding Inquest::investigate(Store& store, const Symptom& symptom) {
  store.set(group_.key("broken", group_.rank), symptom.timed_out ? "timeout" : "broken");
  if (symptom.timed_out) store.set(group_.asked_key(), "");
  const TimePoint deadline = world_.runtime.now() + kPatience;
  while (true) {
    const bool time_is_up = world_.runtime.now() >= deadline;
    const Evidence evidence = gather(store);
    if (evidence.verdict) return decode(*evidence.verdict);
    if (const auto finding = crossed_calls(store, evidence, symptom)) {
      return agree_on(store, *finding);
    }
    if (const auto finding = conclude(evidence, symptom, time_is_up)) {
      return agree_on(store, *finding);
    }
    world_.runtime.sleep_for(kPollInterval);
  }
}

Inquest::Evidence Inquest::gather(Store& store) const {
  std::vector<std::string> keys{group_.verdict_key()};
  for (int rank = 0; rank < group_.size(); ++rank) {
    for (const std::string& key : {world_.lost_key(group_, rank), group_.key("left", rank),
                                   group_.key("broken", rank), group_.key("at", rank)}) {
      keys.push_back(key);
    }
  }
  const auto values = store.multi_get(keys);
  Evidence evidence;
  evidence.verdict = values[0];
  for (int rank = 0; rank < group_.size(); ++rank) {
    const auto* of_rank = &values[1 + 4 * static_cast<std::size_t>(rank)];
    const auto& lost = of_rank[1] ? of_rank[1] : of_rank[0];  // it left, then its process ended
    const auto& broken = of_rank[2];
    if (broken == "timeout") evidence.somebody_timed_out = true;
    if (lost && !broken) {  // a rank that failed first and then left is not the cause
      evidence.lost.push_back(rank);
      evidence.how.push_back(*lost);
    } else if (!broken) {
      std::vector<Whereabout> at;
      if (of_rank[3]) at = read_whereabouts(*of_rank[3]);
      if (std::ranges::find(at, group_.prefix, &Whereabout::prefix) != at.end()) continue;
      evidence.silent.push_back(rank);
      if (of_rank[3]) evidence.where[rank] = std::move(at);
    }
  }
  return evidence;
}

std::optional<Finding> Inquest::crossed_calls(Store& store, const Evidence& evidence,
                                              const Symptom& symptom) const {
  if (!symptom.compares || evidence.silent.empty() || !evidence.lost.empty()) return std::nullopt;
  const auto other = find_crossed_call(group_, evidence.silent, evidence.where);
  if (!other) return std::nullopt;
  std::vector<int> here = group_.world_ranks;
  std::vector<int> there;
  for (const int rank : evidence.silent) {
    there.push_back(group_.world_ranks[static_cast<std::size_t>(rank)]);
    std::erase(here, there.back());
  }
  std::vector<int> missing_there = other->world_ranks;
  std::erase_if(missing_there, [&](int rank) { return std::ranges::count(there, rank) > 0; });
  std::set<int> odd;
  if (here.size() > there.size()) odd.insert(there.begin(), there.end());
  if (2 * missing_there.size() < other->world_ranks.size()) {
    odd.insert(missing_there.begin(), missing_there.end());
  }
  std::string what = "the ranks call on different groups: of the world, " + list_of(here) +
                     (here.size() == 1 ? " is in " : " are in ") + symptom.call + ", " +
                     list_of(there) + (there.size() == 1 ? " is in " : " are in ") + other->call;
  if (!odd.empty()) {
    what += "; " + list_of({odd.begin(), odd.end()}) + (odd.size() == 1 ? " differs" : " differ") +
            " from the majority";
  }
  const Finding theirs{CommErrorKind::kMismatch, places_of(odd, other->world_ranks), what};
  store.compare_set(other->prefix + "/verdict", "", encode(theirs));
  return Finding{CommErrorKind::kMismatch, places_of(odd, group_.world_ranks), what};
}

std::optional<Finding> Inquest::conclude(const Evidence& evidence, const Symptom& symptom,
                                         bool time_is_up) const {
  if (!evidence.lost.empty()) {
    return Finding{CommErrorKind::kPeerLost, evidence.lost,
                   list_of(evidence.lost) + (evidence.lost.size() == 1 ? " is" : " are") +
                       " lost (" + evidence.how.front() + ")"};
  }
  const bool is_clear =
      evidence.somebody_timed_out && evidence.where.size() == evidence.silent.size();
  if (!time_is_up && !is_clear) return std::nullopt;
  if (evidence.somebody_timed_out) {
    const auto waited = std::chrono::duration_cast<milliseconds>(symptom.timeout).count();
    return Finding{CommErrorKind::kTimeout, evidence.silent,
                   "no progress for " + std::to_string(waited) + " ms; " +
                       (evidence.silent.empty()
                            ? "every rank is waiting"
                            : list_of(evidence.silent) + " did not come" + told(evidence.where))};
  }
  return Finding{CommErrorKind::kPeerLost, evidence.silent,
                 evidence.silent.empty()
                     ? "a connection broke though every rank is alive (" + symptom.detail + ")"
                     : "lost the connection, and " + list_of(evidence.silent) +
                           " gave no sign of life since (" + symptom.detail + ")"};
}

Finding Inquest::agree_on(Store& store, const Finding& finding) const {
  return decode(store.compare_set(group_.verdict_key(), "", encode(finding)));
}

}  // namespace ddproof
