#include "properties/scenario/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>

#include "backends/api/error.h"
#include "backends/api/list_of.h"
#include "properties/scenario/program_run.h"

namespace ddproof::scenario {
namespace {

// What one rank's error says.
struct RankError {
  int rank = 0;
  Outcome outcome = Outcome::kPasses;
  std::vector<int> culprits;
  std::string text;
};

Outcome outcome_of(CommErrorKind kind) {
  switch (kind) {
    case CommErrorKind::kTimeout: return Outcome::kTimeout;
    case CommErrorKind::kPeerLost: return Outcome::kLostRank;
    case CommErrorKind::kMismatch: return Outcome::kMismatch;
    case CommErrorKind::kDeadlock: return Outcome::kDeadlock;
    case CommErrorKind::kUnsupported:
    case CommErrorKind::kAborted: return Outcome::kError;
  }
  return Outcome::kError;
}

RankError read_error(int rank, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommError& e) {
    return {rank, outcome_of(e.kind()), e.culprits(), e.what()};
  } catch (const WrongResult& e) {
    return {rank, Outcome::kWrongResult, {rank}, e.what()};
  } catch (const FailedElsewhere& e) {
    return {rank, Outcome::kError, {}, e.what()};
  } catch (const std::exception& e) {
    return {rank, Outcome::kError, {rank}, e.what()};
  } catch (...) {
    return {rank, Outcome::kError, {rank}, "an exception that is no std::exception"};
  }
}

std::vector<int> ranks_with(const sim::Report& report, sim::RankOutcome outcome) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    if (report.ranks[rank].outcome == outcome) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// What calls report: the errors of one outcome say the same, but not all know the culprits, and a
// text reads best where it does not come from one of them. The lowest rank's of the best.
Verdict reported(const std::vector<RankError>& errors, Outcome outcome) {
  const auto worth = [](const RankError& error) {
    if (error.culprits.empty()) return 1;
    return std::ranges::find(error.culprits, error.rank) == error.culprits.end() ? 3 : 2;
  };
  const RankError* best = nullptr;
  for (const RankError& error : errors) {
    if (error.outcome != outcome) continue;
    if (best == nullptr || worth(error) > worth(*best)) best = &error;
  }
  return {outcome, best->culprits, best->text};
}

// What ranks did wrong by themselves: all of them, in the words of the lowest.
Verdict own(const std::vector<RankError>& errors, Outcome outcome) {
  Verdict verdict{outcome, {}, ""};
  for (const RankError& error : errors) {
    if (error.outcome != outcome) continue;
    if (verdict.text.empty()) verdict.text = error.text;
    verdict.culprits.insert(verdict.culprits.end(), error.culprits.begin(), error.culprits.end());
  }
  return verdict;
}

// Ranks may have heard what nobody said.
bool has_damage(const sim::FaultPlan& fired) {
  return std::ranges::any_of(fired, [](const sim::Fault& fault) {
    return fault.kind == sim::FaultKind::kFlip || fault.kind == sim::FaultKind::kTruncate;
  });
}

// "x" after "; " where there is something before it.
void append(std::string& text, const std::string& more) {
  if (!text.empty()) text += "; ";
  text += more;
}

}  // namespace

Verdict judge(const sim::Report& report, const std::optional<Divergence>& divergence) {
  if (report.verdict == sim::Verdict::kEventLimit) {
    return {Outcome::kLivelock, {}, report.verdict_text};
  }
  if (report.verdict == sim::Verdict::kLiveness) {
    return {Outcome::kLiveness, report.verdict_culprits, report.verdict_text};
  }
  std::vector<RankError> errors;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const std::exception_ptr& error = report.ranks[rank].error;
    if (error) errors.push_back(read_error(static_cast<int>(rank), error));
  }
  const auto has = [&](Outcome outcome) {
    return std::ranges::any_of(errors, [&](const auto& e) { return e.outcome == outcome; });
  };
  for (const Outcome outcome : {Outcome::kWrongResult, Outcome::kError}) {
    if (has(outcome)) return own(errors, outcome);
  }
  const std::vector<int> crashed = ranks_with(report, sim::RankOutcome::kCrashed);
  if (!crashed.empty()) {
    return {Outcome::kLostRank, crashed,
            has(Outcome::kLostRank) ? reported(errors, Outcome::kLostRank).text
                                    : list_of(crashed) + " crashed"};
  }
  if (report.verdict == sim::Verdict::kMismatch) {
    return {Outcome::kMismatch, report.verdict_culprits, report.verdict_text};
  }
  if (has(Outcome::kMismatch)) {
    Verdict verdict = reported(errors, Outcome::kMismatch);
    if (!has_damage(report.faults_fired)) return verdict;
    return {Outcome::kMismatch, {}, verdict.text + "; faults damaged messages: nobody is to blame"};
  }
  if (has(Outcome::kTimeout)) return reported(errors, Outcome::kTimeout);
  if (report.verdict == sim::Verdict::kDeadlock) {
    return {Outcome::kDeadlock, report.verdict_culprits, report.verdict_text};
  }
  if (has(Outcome::kLostRank)) return reported(errors, Outcome::kLostRank);
  const std::vector<int> hung = ranks_with(report, sim::RankOutcome::kHung);
  if (!hung.empty()) return {Outcome::kLostRank, hung, list_of(hung) + " hung"};
  if (divergence) {
    // In the same words with and without culprits, so that shrinking goes from one to the other.
    const std::string odd = divergence->ranks.empty() ? "any of them" : list_of(divergence->ranks);
    return {Outcome::kDivergence, divergence->ranks,
            divergence->what + ": not the same bits on all ranks; odd: " + odd};
  }
  return {};
}

std::string describe(const Verdict& verdict) {
  const std::string& name = outcome_names()[static_cast<std::size_t>(verdict.outcome)];
  if (verdict.culprits.empty()) return name;
  return name + " by " + list_of(verdict.culprits);
}

std::string difference(const Expectation& expected, const Verdict& verdict,
                       std::int64_t guarded_works) {
  std::string text;
  if (std::ranges::find(expected.outcomes, verdict.outcome) == expected.outcomes.end()) {
    std::vector<std::string> names;
    for (const Outcome outcome : expected.outcomes) {
      names.push_back(outcome_names()[static_cast<std::size_t>(outcome)]);
    }
    append(text, fmt::format("expected {}, saw {}", fmt::join(names, " or "), describe(verdict)));
  } else if (expected.culprits && verdict.culprits != *expected.culprits) {
    const auto named = [](const std::vector<int>& ranks) {
      return ranks.empty() ? std::string("no rank") : list_of(ranks);
    };
    append(text, fmt::format("expected the culprits to be {}, saw {}", named(*expected.culprits),
                             named(verdict.culprits)));
  }
  for (const std::string& part : expected.operation) {
    if (verdict.text.find(part) != std::string::npos) continue;
    append(text, fmt::format("expected the verdict to name \"{}\"", part));
  }
  if (expected.guarded_works && guarded_works != *expected.guarded_works) {
    append(text, fmt::format("expected a guard's work to run {} times, saw {}",
                             *expected.guarded_works, guarded_works));
  }
  return text;
}

}  // namespace ddproof::scenario
