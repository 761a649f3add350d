#include "backends/gloo/tcp/inquest.h"

#include <exception>
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
  std::getline(in, finding.what);
  return finding;
}

}  // namespace

Finding Inquest::explain(const Symptom& symptom) {
  try {
    return investigate(symptom);
  } catch (const std::exception& error) {  // the store is gone too
    const auto kind = symptom.timed_out ? CommErrorKind::kTimeout : CommErrorKind::kPeerLost;
    return {kind, {}, symptom.detail + "; the store cannot say who is lost: " + error.what()};
  }
}

void Inquest::publish(const Finding& finding) {
  try {
    agree_on(finding);
  } catch (const std::exception&) {
    // The store is gone: the peers will find out by themselves.
  }
}

Finding Inquest::investigate(const Symptom& symptom) {
  world_.store.set(group_.prefix + "/broken/" + std::to_string(group_.rank),
                   symptom.timed_out ? "timeout" : "broken");
  const TimePoint deadline = world_.runtime.now() + kPatience;
  while (true) {
    const bool time_is_up = world_.runtime.now() >= deadline;
    if (const auto verdict = world_.store.try_get(group_.prefix + "/verdict")) {
      return decode(*verdict);
    }
    if (const auto finding = conclude(gather(), symptom, time_is_up)) return agree_on(*finding);
    world_.runtime.sleep_for(kPollInterval);
  }
}

Inquest::Evidence Inquest::gather() const {
  Evidence evidence;
  for (int rank = 0; rank < static_cast<int>(group_.world_ranks.size()); ++rank) {
    const std::string world_rank = std::to_string(group_.world_ranks[rank]);
    const auto lost = world_.store.try_get(world_.lost_prefix + world_rank);
    const auto broken = world_.store.try_get(group_.prefix + "/broken/" + std::to_string(rank));
    if (broken == "timeout") evidence.somebody_timed_out = true;
    if (lost && !broken) {  // a rank that failed first and then left is not the cause
      evidence.lost.push_back(rank);
      evidence.how.push_back(*lost);
    } else if (!broken) {
      evidence.silent.push_back(rank);
    }
  }
  return evidence;
}

std::optional<Finding> Inquest::conclude(const Evidence& evidence, const Symptom& symptom,
                                         bool time_is_up) const {
  if (!evidence.lost.empty()) {
    return Finding{CommErrorKind::kPeerLost, evidence.lost,
                   list_of(evidence.lost) + (evidence.lost.size() == 1 ? " is" : " are") +
                       " lost (" + evidence.how.front() + ")"};
  }
  if (!time_is_up && !(evidence.somebody_timed_out && evidence.silent.empty())) return std::nullopt;
  if (evidence.somebody_timed_out) {
    const auto waited = std::chrono::duration_cast<milliseconds>(symptom.timeout).count();
    return Finding{CommErrorKind::kTimeout, evidence.silent,
                   "no progress for " + std::to_string(waited) + " ms; " +
                       (evidence.silent.empty() ? "every rank is waiting"
                                                : list_of(evidence.silent) + " did not come")};
  }
  return Finding{CommErrorKind::kPeerLost, evidence.silent,
                 evidence.silent.empty()
                     ? "a connection broke though every rank is alive (" + symptom.detail + ")"
                     : "lost the connection, and " + list_of(evidence.silent) +
                           " gave no sign of life since (" + symptom.detail + ")"};
}

Finding Inquest::agree_on(const Finding& finding) {
  return decode(world_.store.compare_set(group_.prefix + "/verdict", "", encode(finding)));
}

}  // namespace ddproof
