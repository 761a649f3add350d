// Searches the schedules of one program for a failure, by one strategy or by a portfolio of them.
// Stops at the first failure, shrinks its schedule, and otherwise says how much it can have missed.
//
// Threads: on the calling thread. Deterministic: the same program, options and seed give the same
// result.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulator/event.h"
#include "simulator/report.h"
#include "simulator/schedule.h"
#include "simulator/scheduler.h"
#include "simulator/step_observer.h"

namespace ddproof::sim {

struct RunSettings {
  std::uint64_t seed = 0;
  Scheduler* scheduler = nullptr;
  StepObserver* observer = nullptr;  // null: nobody
  TraceSink* trace = nullptr;        // null: none
};

struct RunResult {
  Report report;
  // Empty: all is well. Else what is wrong, in the same words whenever the same is wrong: without
  // times, counts and other things that depend on the schedule.
  std::string failure;
};

// Makes one world, runs it as the settings say, and judges it. The same settings, the same result.
using Program = std::function<RunResult(const RunSettings&)>;

enum class Strategy : std::uint8_t {
  kFirstCome,
  kRandomWalk,
  kPct,
  kSearch,  // every order that can differ
  // First come, first served; the search, as far as it ends soon; then a random walk and PCT of
  // depth 1, 2, 3 in turn.
  kPortfolio,
};

struct CampaignOptions {
  Strategy strategy = Strategy::kPortfolio;
  std::uint64_t seed = 0;                 // of the first run; later ones count up
  std::uint64_t runs = 1'000;             // all but those of the search
  std::uint64_t search_runs_max = 1'000;  // after so many the search gives up; 0: no search
  int pct_depth = 3;                      // of kPct, with
  std::uint64_t pct_steps = 1'000;        // so many decisions to change priorities at
  std::vector<std::string> probes = {};   // each must be hit in one run or more
};

inline constexpr int kCampaignDepthMax = 3;

// What PCT promises of bugs of this depth or less; see simulator/pct.h.
struct DepthBound {
  int depth = 1;
  double hit = 0;   // one run of PCT hits a bug of this depth with at least this probability
  double miss = 1;  // all runs together have missed one with at most this probability
};

struct CampaignResult {
  std::uint64_t runs = 0;  // all of them; those of shrinking not counted

  std::string failure;  // of the first failing run; empty: none
  std::string found_by;
  Schedule schedule;  // the shrunk one; its seed is the run's

  std::map<std::string, std::uint64_t, std::less<>> probes;  // hits, over all runs
  std::string missed;  // which of the asked probes no run hit, unless one failed; empty: none

  bool exhausted = false;  // every order of this seed holds
  std::string gap;         // why the search proves nothing, if it does not
  std::uint64_t states = 0;
  std::uint64_t traces = 0;

  std::uint64_t fibers = 0;        // that took part in a decision, at most
  std::uint64_t decisions = 0;     // in one run, at most
  std::vector<DepthBound> bounds;  // by depth; empty: PCT had no part in it, or all was searched
};

// "no run hit the probe \"x\", \"y\"", of those in `required`; empty when all were hit.
std::string missed_probes(const std::vector<std::string>& required,
                          const std::map<std::string, std::uint64_t, std::less<>>& hits);

CampaignResult run_campaign(const Program& program, const CampaignOptions& options);

// What a campaign without a failure shows: "exhaustive: 72 states, 1 traces", or
// "P(missed bug of depth <= 2) <= 1.2e-09, a run hits it with >= 0.0012, ...; 1000 runs, at most 9
// fibers and 224 decisions".
std::string claim_of(const CampaignResult& result);
// That, or "failed: WHY; found by pct of depth 2 in run 17; replay with schedule
// s1.5.22.AB.01234567".
std::string to_string(const CampaignResult& result);

}  // namespace ddproof::sim
