#include "simulator/campaign.h"

#include <algorithm>
#include <cstdio>

#include "simulator/explorer.h"
#include "simulator/pct.h"
#include "simulator/recorder.h"
#include "simulator/shrink_schedule.h"

namespace ddproof::sim {
namespace {

// Shrinking ends after about so many events, so that a large world is shrunk in seconds too.
constexpr std::uint64_t kShrinkEventsMax = 50'000'000;

class Campaign {
 public:
  Campaign(const Program& program, const CampaignOptions& options)
      : program_(program), options_(options) {}

  CampaignResult run() {
    RoundRobin round_robin;
    RandomWalk random_walk;
    switch (options_.strategy) {
      case Strategy::kPortfolio: run_portfolio(); break;
      case Strategy::kFirstCome: run_all(round_robin, "round robin"); break;
      case Strategy::kRandomWalk: run_all(random_walk, "random walk"); break;
      case Strategy::kPct: run_pct(); break;
      case Strategy::kSearch: search(); break;
    }
    if (result_.failure.empty() && !result_.exhausted) count_misses();
    if (result_.failure.empty()) result_.missed = missed_probes(options_.probes, result_.probes);
    return result_;
  }

 private:
  struct PctRun {
    int depth;
    std::uint64_t steps;
  };

  // False when the run failed.
  bool run_once(Scheduler& scheduler, std::uint64_t seed, const std::string& name,
                StepObserver* observer = nullptr) {
    Recorder recorder(scheduler);
    const RunResult run = program_({.seed = seed, .scheduler = &recorder, .observer = observer});
    ++result_.runs;
    for (const auto& [probe, hits] : run.report.probes) result_.probes[probe] += hits;
    result_.fibers = std::max(result_.fibers, recorder.fibers());
    result_.decisions = std::max(result_.decisions, recorder.schedule().decisions);
    if (run.failure.empty()) return true;
    result_.failure = run.failure;
    result_.found_by = name;
    const std::uint64_t runs_max = std::clamp<std::uint64_t>(
        kShrinkEventsMax / std::max<std::uint64_t>(1, run.report.events), 16, 2'000);
    result_.schedule = shrink_schedule(program_, recorder.schedule(), run.failure, runs_max);
    return false;
  }

  void run_all(Scheduler& scheduler, const std::string& name) {
    for (std::uint64_t i = 0; i < options_.runs; ++i) {
      if (!run_once(scheduler, options_.seed + i, name)) return;
    }
  }

  bool run_pct_once(int depth, std::uint64_t steps, std::uint64_t seed) {
    Pct pct(depth, steps);
    pct_runs_.push_back({depth, steps});
    return run_once(pct, seed, "pct of depth " + std::to_string(depth));
  }

  void run_pct() {
    for (std::uint64_t i = 0; i < options_.runs; ++i) {
      if (!run_pct_once(options_.pct_depth, options_.pct_steps, options_.seed + i)) return;
    }
  }

  void run_portfolio() {
    RoundRobin round_robin;
    if (!run_once(round_robin, options_.seed, "round robin")) return;
    if (search() && !result_.exhausted) sample();
  }

  // False when a run failed.
  bool search() {
    if (options_.search_runs_max == 0) return true;
    Explorer explorer;
    bool goes_on = true;
    for (std::uint64_t i = 0; goes_on && i < options_.search_runs_max; ++i) {
      if (!run_once(explorer, options_.seed, "search", &explorer)) return false;
      goes_on = explorer.advance();
    }
    result_.gap = explorer.gap();
    result_.exhausted = !goes_on && result_.gap.empty();
    result_.states = explorer.states();
    result_.traces = explorer.traces();
    return true;
  }

  void sample() {
    RandomWalk random_walk;
    for (std::uint64_t i = 0; i < options_.runs; ++i) {
      const std::uint64_t seed = options_.seed + i;
      const int depth = static_cast<int>(i % (kCampaignDepthMax + 1));
      if (depth == 0) {
        if (!run_once(random_walk, seed, "random walk")) return;
        continue;
      }
      // Some more than ever seen: a bound counts only if no run made more decisions.
      const std::uint64_t steps = result_.decisions + result_.decisions / 4 + 1;
      if (!run_pct_once(depth, steps, seed)) return;
    }
  }

  void count_misses() {
    const bool is_portfolio = options_.strategy == Strategy::kPortfolio;
    if (!is_portfolio && options_.strategy != Strategy::kPct) return;
    for (int depth = 1; is_portfolio && depth <= kCampaignDepthMax; ++depth) {
      result_.bounds.push_back({depth});
    }
    if (!is_portfolio) result_.bounds.push_back({options_.pct_depth});
    if (result_.fibers == 0) return;
    for (const PctRun& run : pct_runs_) {
      if (run.steps < result_.decisions) continue;
      const double hit = pct_bound(result_.fibers, run.steps, run.depth);
      for (DepthBound& bound : result_.bounds) {
        if (bound.depth > run.depth) continue;
        bound.hit = std::max(bound.hit, hit);
        bound.miss *= miss_probability(hit, 1);
      }
    }
  }

  const Program& program_;
  const CampaignOptions& options_;
  CampaignResult result_;
  std::vector<PctRun> pct_runs_;
};

}  // namespace

std::string missed_probes(const std::vector<std::string>& required,
                          const std::map<std::string, std::uint64_t, std::less<>>& hits) {
  std::string text;
  for (const std::string& probe : required) {
    if (hits.contains(probe)) continue;
    text += (text.empty() ? "no run hit the probe \"" : ", \"") + probe + "\"";
  }
  return text;
}

CampaignResult run_campaign(const Program& program, const CampaignOptions& options) {
  return Campaign(program, options).run();
}

std::string claim_of(const CampaignResult& result) {
  const std::string found =
      std::to_string(result.states) + " states, " + std::to_string(result.traces) + " traces";
  if (result.exhausted) return "exhaustive: " + found;
  std::string text;
  for (const DepthBound& bound : result.bounds) {
    char line[120];
    std::snprintf(line, sizeof line,
                  "P(missed bug of depth <= %d) <= %.2g, a run hits it with >= %.2g; ", bound.depth,
                  bound.miss, bound.hit);
    text += line;
  }
  text += std::to_string(result.runs) + (result.runs == 1 ? " run" : " runs") + ", at most " +
          std::to_string(result.fibers) + " fibers and " + std::to_string(result.decisions) +
          " decisions";
  if (!result.gap.empty()) return text + "; the search proves nothing: " + result.gap;
  return result.traces == 0 ? text : text + "; searched in part: " + found;
}

std::string to_string(const CampaignResult& result) {
  if (!result.missed.empty()) return "failed: " + result.missed + "; " + claim_of(result);
  if (result.failure.empty()) return claim_of(result);
  return "failed: " + result.failure + "; found by " + result.found_by + " in run " +
         std::to_string(result.runs) + "; replay with schedule " + to_string(result.schedule);
}

}  // namespace ddproof::sim
