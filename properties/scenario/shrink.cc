#include "properties/scenario/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/api/digest.h"
#include "backends/api/error.h"
#include "properties/scenario/complaint.h"
#include "properties/scenario/parse.h"
#include "properties/scenario/parse_steps.h"
#include "properties/scenario/reductions.h"
#include "properties/scenario/scenario_edit.h"
#include "simulator/recorder.h"
#include "simulator/replay.h"
#include "simulator/scheduler.h"
#include "simulator/stack.h"

namespace ddproof::scenario {
namespace {

constexpr std::uint64_t kEventsMax = 30'000'000;  // of the simulator, over all tries
constexpr std::uint64_t kOwnRunsMax = 4;          // as many again as so many runs of the failure
constexpr int kWalks = 30;
constexpr int kWalksMin = 3;  // also where a run is long
constexpr std::uint64_t kWalkEventsMax = 1'000'000;
constexpr std::size_t kFlatStepsMax = 2'000;
constexpr std::uint64_t kEarlierMax = 32;

class Shrinker {
 public:
  Shrinker(Json document, const Scenario& scenario, const ScenarioResult& failing)
      : file_(scenario.file),
        seed_(failing.seed),
        schedule_(failing.recorded->schedule),
        complaint_(complaint_of(failing.told)),
        best_(std::move(document)) {
    best_.erase("schedules");
    best_.erase("drawn_faults");
    best_.erase("faults");
    for (const sim::Fault& fault : failing.faults) best_["faults"].push_back(to_string(fault));
    if (complaint_.outcome == Outcome::kWrongResult) fixed_keys_ = {"value", "expect"};
    is_race_ = depends_on_schedule(best_);
    const std::optional<Scenario> healthy = read(without_key(best_, "faults"));
    blames_faults_ = !failing.faults.empty() && healthy && passes(*healthy);
    if (complaint_.outcome == Outcome::kLivelock) best_["event_limit"] = scenario.event_limit;
    // Below any limit on events a program is stuck before its first call.
    const std::optional<Scenario> once = read(taken_once(best_));
    blames_turns_ = complaint_.outcome == Outcome::kLivelock && once && passes(*once);
    events_max_ = kEventsMax + kOwnRunsMax * failing.told.report.events;
  }

  Json run() {
    for (bool is_smaller = true; is_smaller && !is_over();) {
      const std::string before = best_.dump();
      take_fewer_turns();
      leave_out_keys();
      attempt(zeroed(best_));
      leave_out_ranks();
      take_fewer_turns();  // without what the others did, a lower limit is enough
      attempt(flatten(best_, kFlatStepsMax));
      leave_out_steps();
      take_fewer_turns();
      leave_out_faults();
      reduce_steps();
      is_smaller = best_.dump() != before;
    }
    best_["schedules"] = {{{"scheduler", is_race_ ? "campaign" : "round robin"}}};
    return best_;
  }

  std::uint64_t runs() const { return runs_; }
  // Of a race: a schedule that fails with what run() returned.
  std::optional<sim::Schedule> schedule() const {
    return is_race_ ? std::optional(schedule_) : std::nullopt;
  }

 private:
  bool is_over() const { return events_ >= events_max_; }

  Run run(const Scenario& scenario, sim::Scheduler& scheduler, std::uint64_t seed) {
    ++runs_;
    Run run = run_once(scenario, {.seed = seed, .scheduler = &scheduler},
                       {.faults = scenario.faults, .stacks = &stacks_});
    events_ += run.report.events;
    return run;
  }

  bool passes(const Scenario& scenario) {
    sim::RoundRobin round_robin;
    return run(scenario, round_robin, seed_).wrong.empty();
  }

  bool complains(const Run& run) const {
    return !run.wrong.empty() && is_same(complaint_, complaint_of(run));
  }

  std::optional<Scenario> read(const Json& document) const {
    try {
      return parse_scenario(document.dump(), file_);
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }

  // Whether the document is a scenario that fails as the first one did, and for the same reason:
  // what only some schedules, or only faults, brought about must not happen without them.
  bool fails(const Json& document) {
    if (is_race_) return depends_on_schedule(document);
    const std::optional<Scenario> scenario = read(document);
    if (!scenario) return false;
    sim::RoundRobin round_robin;
    if (!complains(run(*scenario, round_robin, seed_))) return false;
    return (!blames_faults_ || holds(without_key(document, "faults"))) &&
           (!blames_turns_ || holds(taken_once(document)));
  }

  bool holds(const Json& document) {
    const std::optional<Scenario> scenario = read(document);
    return scenario && passes(*scenario);
  }

  // Whether it fails under some schedule, and passes under another one. Tried first: the schedule
  // that failed last, as far as it fits.
  bool depends_on_schedule(const Json& document) {
    const std::optional<Scenario> scenario = read(document);
    if (!scenario) return false;
    sim::Replay last(schedule_);
    sim::RoundRobin round_robin;
    sim::RandomWalk random_walk;
    std::optional<sim::Schedule> failing;
    bool has_passed = false;
    const std::uint64_t begin = events_;
    const auto may_walk = [&](int walk) {
      return walk < kWalksMin || (walk < kWalks && events_ - begin < kWalkEventsMax);
    };
    for (int walk = 0; may_walk(walk) && !(failing && has_passed); ++walk) {
      sim::Scheduler* const schedulers[] = {&last, &round_robin, &random_walk};
      sim::Recorder recorder(*schedulers[std::min(walk, 2)]);
      const Run made = run(*scenario, recorder, schedule_.seed + static_cast<std::uint64_t>(walk));
      if (!failing && complains(made)) failing = recorder.schedule();
      has_passed = has_passed || made.wrong.empty();
    }
    if (!failing || !has_passed) return false;
    schedule_ = *failing;
    return true;
  }

  // Takes the candidate if it fails; else with a fault that comes earlier, since what it counts may
  // have become less.
  bool attempt(const Json& candidate) {
    if (is_over() || !tried_.insert(digest_of(candidate.dump())).second) return false;
    if (fails(candidate)) {
      best_ = candidate;
      return true;
    }
    for (const Json& earlier : with_earlier_faults(candidate, kEarlierMax)) {
      if (is_over()) return false;
      if (!tried_.insert(digest_of(earlier.dump())).second || !fails(earlier)) continue;
      best_ = earlier;
      return true;
    }
    return false;
  }

  // Leaves out as many of `count(best)` parts as it can: all, halves, ... single ones.
  void leave_out(const std::function<std::size_t(const Json&)>& count,
                 const std::function<Json(const Json&, const Parts&)>& without) {
    for (std::size_t part = count(best_); part > 0; part /= 2) {
      for (std::size_t begin = 0; begin < count(best_) && !is_over();) {
        Parts parts(count(best_));
        std::fill_n(parts.begin() + static_cast<std::ptrdiff_t>(begin),
                    std::min(part, parts.size() - begin), true);
        if (!attempt(without(best_, parts))) begin += part;
      }
    }
  }

  // First of all, since each try costs half of the one before. What ends at a limit on events ends
  // at half of it after half as many turns.
  void take_fewer_turns() {
    for (bool is_smaller = true; is_smaller && !is_over();) {
      is_smaller = false;
      for (const bool scales_turns : {true, false}) {
        Json fewer = halved(best_, scales_turns);
        if (blames_turns_) halve(fewer["event_limit"]);
        is_smaller = is_smaller || attempt(fewer);
      }
    }
    while (blames_turns_ && !is_over() && attempt(with_half_the_limit())) {
    }
  }

  static void halve(Json& number) { number = (number.get<std::int64_t>() + 1) / 2; }

  Json with_half_the_limit() const {
    Json result = best_;
    halve(result["event_limit"]);
    return result;
  }

  // The ranks that faults name, alone: with others gone one by one, messages go other ways than the
  // one that a fault strikes, until none does.
  void leave_out_bystanders() {
    const std::set<int> named = ranks_of_faults(best_);
    if (named.empty()) return;
    attempt(keep_ranks(best_, {named.begin(), named.end()}, LostPeer::kDrop));
  }

  void leave_out_ranks() {
    leave_out_bystanders();
    const auto count = [](const Json& document) {
      return document.at("world_size").get<std::size_t>();
    };
    for (const LostPeer lost_peer : {LostPeer::kDrop, LostPeer::kSkip}) {
      leave_out(count, [lost_peer](const Json& document, const Parts& parts) {
        std::vector<int> kept;
        for (std::size_t rank = 0; rank < parts.size(); ++rank) {
          if (!parts[rank]) kept.push_back(static_cast<int>(rank));
        }
        return kept.empty() ? document : keep_ranks(document, kept, lost_peer);
      });
    }
  }

  void leave_out_steps() {
    leave_out(count_messages, without_messages);
    leave_out(count_shared_steps, without_shared_steps);
    leave_out(count_steps_of_groups, without_steps_of_groups);
    leave_out(count_groups, without_groups);
  }

  void leave_out_faults() {
    leave_out([](const Json& document) { return document.value("faults", Json::array()).size(); },
              without_faults);
  }

  void leave_out_keys() {
    for (const std::string& key : optional_keys(best_)) {
      const bool ends_it = complaint_.outcome == Outcome::kLivelock && key == "event_limit";
      if (!ends_it) attempt(without_key(best_, key));
    }
    for (const std::string& key : step_keys(best_, fixed_keys_))
      attempt(without_step_key(best_, key));
  }

  void reduce_steps() {
    const auto attempt_it = [this](const Json& candidate) { return attempt(candidate); };
    while (!is_over() && any_smaller_step(best_, fixed_keys_, attempt_it)) {
    }
  }

  std::string file_;
  std::uint64_t seed_;
  sim::Schedule schedule_;  // that failed last
  Complaint complaint_;
  Json best_;
  Keys fixed_keys_;
  bool is_race_ = false;        // it fails under some schedules only
  bool blames_faults_ = false;  // it passes without them
  bool blames_turns_ = false;   // a livelock that passes where each loop takes one turn
  std::uint64_t events_max_ = kEventsMax;
  sim::StackPool stacks_;
  std::set<std::uint64_t> tried_;  // digests
  std::uint64_t runs_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace

ShrunkScenario shrink_scenario(std::string_view text, const Scenario& scenario,
                               const ScenarioResult& failing, const std::string& name) {
  Shrinker shrinker(JsonText(text, scenario.file).value(), scenario, failing);
  ShrunkScenario shrunk;
  shrunk.text = to_text(shrinker.run());
  shrunk.runs = shrinker.runs();
  shrunk.scenario = parse_scenario(shrunk.text, name);
  shrunk.result = run_scenario(shrunk.scenario, {.seed = failing.seed});
  if (shrunk.result.told.wrong.empty() && shrinker.schedule()) {
    // So rare that even the campaign misses it.
    shrunk.result = run_schedule(shrunk.scenario, *shrinker.schedule(), {});
  }
  return shrunk;
}

std::string to_string(const ScenarioSize& size) {
  const auto count = [](auto number, const char* noun) {
    return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
  };
  return count(size.ranks, "rank") + ", " + count(size.steps, "step") + ", " +
         count(size.faults, "fault") + ", " + count(size.choices, "choice");
}

ScenarioSize size_of(const Scenario& scenario, const ScenarioResult& result) {
  ScenarioSize size{.ranks = scenario.world_size};
  for (int rank = 0; rank < scenario.world_size; ++rank) {
    size.steps += count_steps(scenario.program_of(rank), scenario.world_size);
  }
  size.faults = result.faults.size();
  if (result.recorded) size.choices = result.recorded->schedule.choices.size();
  return size;
}

}  // namespace ddproof::scenario
