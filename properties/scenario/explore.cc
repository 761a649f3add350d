#include "properties/scenario/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/api/error.h"
#include "properties/scenario/fault_shape.h"
#include "simulator/draw_faults.h"
#include "simulator/recorder.h"
#include "simulator/replay.h"
#include "simulator/stack.h"

namespace ddproof::scenario {
namespace {

// What the same schedule shows under one more plan of faults.
void merge(sim::CampaignResult& total, const sim::CampaignResult& more) {
  if (total.runs == 0) {
    total = more;
    return;
  }
  total.runs += more.runs;
  total.exhausted = total.exhausted && more.exhausted;
  if (total.gap.empty()) total.gap = more.gap;
  total.states += more.states;
  total.traces += more.traces;
  total.fibers = std::max(total.fibers, more.fibers);
  total.decisions = std::max(total.decisions, more.decisions);
  const std::size_t depths = std::min(total.bounds.size(), more.bounds.size());
  for (std::size_t i = 0; i < depths; ++i) {
    total.bounds[i].hit = std::min(total.bounds[i].hit, more.bounds[i].hit);
    total.bounds[i].miss = std::max(total.bounds[i].miss, more.bounds[i].miss);
  }
}

// Why an exhaustive schedule without a failure shows nothing; empty: it does.
std::string unfinished(const sim::CampaignOptions& schedule, const sim::CampaignResult& result) {
  if (schedule.strategy != sim::Strategy::kSearch || result.exhausted) return "";
  if (!result.gap.empty()) return "the search proves nothing: " + result.gap;
  return fmt::format("the search ended after {} runs without all orders; raise its \"runs\"",
                     result.runs);
}

class Exploration {
 public:
  Exploration(const Scenario& scenario, const ExploreOptions& options)
      : scenario_(scenario), options_(options) {
    result_.outcomes.resize(kOutcomeCount);
    result_.faults_struck.resize(sim::kFaultKindCount);
    for (const sim::CampaignOptions& schedule : scenario.schedules) {
      result_.explored.push_back({schedule.strategy, {}});
    }
  }

  ScenarioResult explore() {
    explore_all();
    if (result_.wrong.empty()) result_.wrong = sim::missed_probes(scenario_.probes, result_.probes);
    const bool is_watched = options_.stories || options_.records || options_.trace != nullptr;
    if (is_watched && !result_.recorded) {
      const std::string wrong = result_.wrong;
      const std::uint64_t digest = result_.told.report.digest;
      tell_again(first_schedule_, sim::FaultPlan(result_.faults), "");
      if (result_.wrong.empty()) result_.wrong = wrong;
      if (result_.told.report.digest != digest) {
        result_.wrong = "the run does not repeat itself; its digest differs";
      }
    }
    return std::move(result_);
  }

  // Runs a schedule, watched. Throws sim::ScheduleError when the run has other choices.
  void tell(const sim::Schedule& schedule, const sim::FaultPlan& faults) {
    sim::Replay replay(schedule);
    result_.told = run_once(
        scenario_, {.seed = schedule.seed, .scheduler = &replay, .trace = options_.trace},
        {.faults = faults, .stacks = &stacks_, .stories = options_.stories, .records = true});
    replay.check();
    result_.wrong = result_.told.wrong;
    result_.faults = faults;
    result_.seed = schedule.seed;
    result_.recorded = {program_digest(scenario_, faults), result_.told.report.digest, schedule};
  }

  ScenarioResult& result() { return result_; }

 private:
  // Until something is not as expected.
  void explore_all() {
    for (const sim::FaultPlan& faults : plans()) {
      for (std::size_t i = 0; i < scenario_.schedules.size(); ++i) {
        if (!explore(i, faults)) return;
      }
    }
  }

  std::vector<sim::FaultPlan> plans() {
    if (!scenario_.drawn_faults) return {scenario_.faults};
    const sim::FaultShape shape = measure_shape(scenario_, options_.seed);
    std::vector<sim::FaultPlan> plans;
    for (const std::int64_t seed : scenario_.drawn_faults->numbers()) {
      plans.push_back(scenario_.faults);
      const sim::FaultPlan drawn = sim::draw_faults(static_cast<std::uint64_t>(seed), shape);
      plans.back().insert(plans.back().end(), drawn.begin(), drawn.end());
    }
    return plans;
  }

  void tell_again(const sim::Schedule& schedule, const sim::FaultPlan& faults,
                  const std::string& wrong) {
    std::string difference;
    try {
      tell(schedule, faults);
    } catch (const sim::ScheduleError& error) {
      difference = error.what();
    }
    if (difference.empty() && result_.wrong == wrong) return;
    result_.wrong = fmt::format("the run does not repeat itself: {}",
                                difference.empty() ? result_.wrong : difference);
  }

  // Nothing when the run has other choices.
  std::optional<Run> replay(const sim::Schedule& schedule, const sim::FaultPlan& faults) {
    sim::Replay replay(schedule);
    Run run = run_once(scenario_, {.seed = schedule.seed, .scheduler = &replay},
                       {.faults = faults, .stacks = &stacks_});
    try {
      replay.check();
    } catch (const sim::ScheduleError&) {
      return std::nullopt;
    }
    return run;
  }

  // Only the faults that strike, where the failure is the same without the others.
  sim::FaultPlan without_idle(const sim::FaultPlan& faults, const sim::CampaignResult& found) {
    const std::optional<Run> all = replay(found.schedule, faults);
    if (!all) return faults;
    sim::FaultPlan plan = faults;
    const sim::FaultPlan& fired = all->report.faults_fired;
    std::erase_if(plan, [&](const sim::Fault& fault) {
      return std::ranges::find(fired, fault) == fired.end();
    });
    const std::optional<Run> fewer = replay(found.schedule, plan);
    return fewer && fewer->wrong == found.failure ? plan : faults;
  }

  // False when the schedule's runs, or what they show, is not as expected.
  bool explore(std::size_t place, const sim::FaultPlan& faults) {
    sim::CampaignOptions schedule = scenario_.schedules[place];
    schedule.seed += options_.seed;
    is_found_ = false;
    const sim::CampaignResult found = run_campaign(
        [&](const sim::RunSettings& settings) { return run(settings, faults); }, schedule);
    merge(result_.explored[place].result, found);
    result_.runs += found.runs;
    if (found.failure.empty()) {
      result_.wrong = unfinished(schedule, found);
      if (!result_.wrong.empty()) result_.strategy = schedule.strategy;
      return result_.wrong.empty();
    }
    result_.strategy = schedule.strategy;
    const bool has_idle = scenario_.drawn_faults.has_value();
    tell_again(found.schedule, has_idle ? without_idle(faults, found) : faults, found.failure);
    return false;
  }

  sim::RunResult run(const sim::RunSettings& settings, const sim::FaultPlan& faults) {
    sim::Recorder recorder(*settings.scheduler);
    sim::RunSettings recorded = settings;
    recorded.scheduler = &recorder;
    Run run = run_once(scenario_, recorded, {.faults = faults, .stacks = &stacks_});
    if (!is_found_) {  // what follows only shrinks the schedule
      for (const auto& [probe, hits] : run.report.probes) result_.probes[probe] += hits;
      ++result_.outcomes[static_cast<std::size_t>(run.verdict.outcome)];
      for (const sim::Fault& fault : run.report.faults_fired) {
        ++result_.faults_struck[static_cast<std::size_t>(fault.kind)];
      }
    }
    is_found_ = is_found_ || !run.wrong.empty();
    if (!has_first_) {
      has_first_ = true;
      first_schedule_ = recorder.schedule();
      result_.told = run;
      result_.faults = faults;
      result_.seed = settings.seed;
      result_.strategy = scenario_.schedules.front().strategy;
    }
    return {std::move(run.report), std::move(run.wrong)};
  }

  const Scenario& scenario_;
  const ExploreOptions& options_;
  sim::StackPool stacks_;
  ScenarioResult result_;
  sim::Schedule first_schedule_;
  bool has_first_ = false;
  bool is_found_ = false;  // by this campaign
};

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario, const ExploreOptions& options) {
  return Exploration(scenario, options).explore();
}

ScenarioResult run_schedule(const Scenario& scenario, const sim::Schedule& schedule,
                            const ExploreOptions& options) {
  Exploration exploration(scenario, options);
  exploration.tell(schedule, scenario.faults);
  ScenarioResult& result = exploration.result();
  result.runs = 1;
  result.explored.clear();
  return std::move(result);
}

void require_same_program(const Scenario& scenario, const RecordedRun& recorded) {
  if (recorded.program == program_digest(scenario, scenario.faults)) return;
  throw ConfigError(
      fmt::format("the schedule was recorded with another {}, a file of another name or other "
                  "faults; replay it with the file and the --faults it was made with",
                  scenario.file));
}

ScenarioResult replay_scenario(const Scenario& scenario, const RecordedRun& recorded,
                               const ExploreOptions& options) {
  require_same_program(scenario, recorded);
  ScenarioResult result;
  try {
    result = run_schedule(scenario, recorded.schedule, options);
  } catch (const sim::ScheduleError& error) {
    throw ConfigError(error.what());
  }
  const std::uint64_t digest = result.told.report.digest;
  if (digest == recorded.digest) return result;
  throw ConfigError(
      fmt::format("the run has digest {:016x}, the recorded one had {:016x}; replay it with the "
                  "version of ddproof it was made with",
                  digest, recorded.digest));
}

}  // namespace ddproof::scenario
