#include "simulator/campaign.h"

#include <algorithm>
#include <cstdio>

#include "simulator/explorer.h"
#include "simulator/pct.h"
#include "simulator/recorder.h"
#include "simulator/shrink_schedule.h"

namespace ddproof::sim {
namespace {

class Campaign {
 public:
  Campaign(const Program& program, const CampaignOptions& options)
      : program_(program), options_(options) {}

  CampaignResult run() {
    RoundRobin round_robin;
    if (run_once(round_robin, options_.seed, "round robin")) {
      if (search() && !result_.exhausted) sample();
    }
    if (result_.failure.empty()) count_misses();
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
    result_.fibers = std::max(result_.fibers, recorder.fibers());
    result_.decisions = std::max(result_.decisions, recorder.schedule().decisions);
    if (run.failure.empty()) return true;
    result_.failure = run.failure;
    result_.found_by = name;
    result_.schedule = shrink_schedule(program_, recorder.schedule(), run.failure);
    return false;
  }

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
      Pct pct(depth, steps);
      pct_runs_.push_back({depth, steps});
      if (!run_once(pct, seed, "pct of depth " + std::to_string(depth))) return;
    }
  }

  void count_misses() {
    result_.miss_probability.assign(kCampaignDepthMax, result_.exhausted ? 0 : 1);
    if (result_.exhausted || result_.fibers == 0) return;
    for (const PctRun& run : pct_runs_) {
      if (run.steps < result_.decisions) continue;
      const double missed = miss_probability(pct_bound(result_.fibers, run.steps, run.depth), 1);
      for (int depth = 1; depth <= run.depth; ++depth) {
        result_.miss_probability[static_cast<std::size_t>(depth - 1)] *= missed;
      }
    }
  }

  const Program& program_;
  const CampaignOptions& options_;
  CampaignResult result_;
  std::vector<PctRun> pct_runs_;
};

}  // namespace

CampaignResult run_campaign(const Program& program, const CampaignOptions& options) {
  return Campaign(program, options).run();
}

std::string to_string(const CampaignResult& result) {
  if (!result.failure.empty()) {
    return "failed: " + result.failure + "; found by " + result.found_by + " in run " +
           std::to_string(result.runs) + "; replay with schedule " + to_string(result.schedule);
  }
  if (result.exhausted) {
    return "exhaustive: " + std::to_string(result.states) + " states, " +
           std::to_string(result.traces) + " traces";
  }
  std::string text;
  for (std::size_t i = 0; i < result.miss_probability.size(); ++i) {
    char line[80];
    std::snprintf(line, sizeof line, "%sP(missed bug of depth <= %zu) <= %.2g", i == 0 ? "" : ", ",
                  i + 1, result.miss_probability[i]);
    text += line;
  }
  text += "; " + std::to_string(result.runs) + " runs, at most " + std::to_string(result.fibers) +
          " fibers and " + std::to_string(result.decisions) + " decisions";
  if (!result.gap.empty()) text += "; not searched: " + result.gap;
  return text;
}

}  // namespace ddproof::sim
