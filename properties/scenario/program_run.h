// What the ranks of one run share, and one rank's way through its program.
//
// Threads: that of the run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/backend.h"
#include "properties/scenario/rank_training.h"
#include "properties/scenario/replicas.h"
#include "properties/scenario/scenario.h"
#include "properties/scenario/story.h"
#include "simulator/fault.h"

namespace ddproof::scenario {

// Probes of Runtime::hit().
inline constexpr std::string_view kMoreRanksThanSamples = "padding with more ranks than samples";
inline constexpr std::string_view kTimeoutBesideGuard =
    "timeout while another rank is in the guard";

// A step's result is not what the scenario expects of it.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Work that another rank did in a guard failed, and this rank was told so.
class FailedElsewhere : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct SharedRun {
  SharedRun(const Scenario& run_scenario, std::uint64_t run_seed, bool tell)
      : scenario(run_scenario),
        seed(run_seed),
        tells(tell),
        stories(static_cast<std::size_t>(run_scenario.world_size)),
        replicas(run_scenario.world_size) {}

  const Scenario& scenario;
  std::uint64_t seed;
  bool tells;  // whether stories are kept
  std::vector<RankStory> stories;
  Replicas replicas;
  std::int64_t guarded_works = 0;
  std::set<int> in_guard;  // ranks
};

class ProgramRun {
 public:
  ProgramRun(SharedRun& shared, RankContext& rank);

  // Returns when the program has ended or exited. Throws what its steps throw.
  void run();

 private:
  enum class Flow : std::uint8_t { kGoOn, kExit };

  Flow run_steps(const Steps& steps);
  Flow run_step(const Step& step);
  Flow act(const Step& step, const CallStep& call);
  Flow act(const Step& step, const PassTime& time);
  Flow act(const Step& step, const GuardStep& guard);
  Flow act(const Step& step, const SamplerStep& sampler);
  Flow act(const Step& step, const TrainStep& train);
  Flow act(const Step& step, const CheckpointStep& checkpoint);
  Flow act(const Step& step, const RepeatStep& repeat);
  Flow act(const Step& step, const IfStep& branch);
  Flow act(const Step& step, const CrashStep&);
  Flow act(const Step& step, const HangStep&);
  Flow act(const Step& step, const ExitStep&);
  Flow act(const Step& step, const ThrowStep& thrown);

  void make_groups();
  ProcessGroup& group_of(const CallStep& call) const;
  RankTraining& start_training();
  bool holds(const Condition& condition) const;
  CallSite site_of(const Site& site) const;
  [[noreturn]] void fail(const Step& step, const std::string& what) const;

  SharedRun& shared_;
  RankContext& rank_;
  int number_;  // of this rank
  int local_rank_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;  // null: this rank is not in it
  std::unique_ptr<RankTraining> training_;             // once something trained
  int depth_ = 0;
  std::int64_t turn_ = 0;               // of the innermost loop
  std::int64_t batch_size_ = 0;         // of the sampler's current batch
  std::optional<double> result_;        // of the last call
  const Step* no_result_of_ = nullptr;  // the last call, when the payload left its result out
};

}  // namespace ddproof::scenario
