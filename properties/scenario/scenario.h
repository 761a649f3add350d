// A scenario: a world, what its ranks do, and what must come of it, as data. The form in files is
// in README.md; parse.h reads it.
//
// Plain structs. The strings that calls borrow (sites) live in the scenario, which must outlive its
// runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backends/api/call.h"
#include "backends/api/placement.h"
#include "backends/registry/simulated_world.h"
#include "properties/scenario/rank_set.h"
#include "reference/compute/charged_device.h"
#include "reference/launch/main_process_first.h"
#include "simulator/campaign.h"
#include "simulator/fault_plan.h"
#include "simulator/liveness.h"
#include "simulator/network.h"

namespace ddproof::scenario {

struct Step;
using Steps = std::vector<Step>;

// Where a call is made; empty file: the scenario's own, whose lines ranks do not compare.
struct Site {
  std::string file;
  int line = 1;
};

// Ranks that also make calls among themselves.
struct Group {
  std::string name;
  std::vector<int> ranks;  // of the world, by their rank in the group
};

// A call on the process group. `count` is the number of elements of one rank's part: all_gather's
// output, reduce_scatter's input and all_to_all's two buffers have as many times more as the group
// has ranks. `root` and `peer` are ranks of the world.
struct CallStep {
  Op op = Op::kBarrier;
  int group = -1;  // of Scenario::groups; -1: the world
  DType dtype = DType::kFloat32;
  std::int64_t count = 1;
  Layout layout;  // in-place operations, send, recv
  int root = 0;
  int peer = 0;
  std::uint32_t tag = 0;
  ReduceOp reduce = ReduceOp::kSum;
  bool wait_all_ranks = false;
  std::string label;
  Site site;
  Duration timeout{0};         // 0: the scenario's
  std::vector<double> value;   // the input's elements, over and over; empty: rank + 1
  std::vector<double> expect;  // the result's elements, over and over; empty: not checked
};

// Time that passes. It takes as long either way; traces tell the two apart.
struct PassTime {
  Duration duration{0};
  bool computes = false;  // else it sleeps
};

// main_process_first: the work takes `work` and then fails, if `failure` is not empty.
struct GuardStep {
  GuardScope scope = GuardScope::kNode;
  Duration work{0};
  std::string failure;
  Site site;
};

// The samples of this rank in one epoch, batch by batch; `each` runs once per batch.
struct SamplerStep {
  std::int64_t length = 0;
  std::int64_t batch_size = 1;
  bool shuffle = true;
  bool drop_last = false;        // the sampler's: before the split
  bool drop_last_batch = false;  // the loader's: after it
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t position = 0;
  std::optional<std::vector<std::int64_t>> expect;  // this rank's samples
  Steps each;
};

// One training step of the built-in model for each batch size given; without any, one step on the
// sampler's batch.
struct TrainStep {
  std::vector<std::int64_t> batches;
  bool unused_parameters = false;           // backward does not reach the first layer
  bool join = false;                        // the steps stand in DistributedDataParallel::join()
  bool throw_on_early_termination = false;  // of join()
};

// "{rank}" in `path` stands for the rank's number.
struct CheckpointStep {
  bool save = true;
  bool shared = true;  // by all ranks together, through rank 0; else by this rank alone
  std::string path;
  std::optional<std::int64_t> expect_step;  // load: the number of training steps in it
};

struct RepeatStep {
  std::int64_t times = 1;
  Steps steps;
};

// All that are given must hold.
struct Condition {
  std::optional<RankSet> ranks;
  std::optional<RankSet> local_ranks;
  std::optional<RankSet> turns;  // of the innermost repeat or sampler: 0, 1, ...
  std::optional<double> result;  // of this rank's last call: its first element
};

struct IfStep {
  Condition condition;
  Steps then;
  Steps otherwise;
};

struct CrashStep {};  // the process dies
struct HangStep {};   // it falls silent
struct ExitStep {};   // the program returns
struct ThrowStep {
  std::string text;
};

using Action = std::variant<CallStep, PassTime, GuardStep, SamplerStep, TrainStep, CheckpointStep,
                            RepeatStep, IfStep, CrashStep, HangStep, ExitStep, ThrowStep>;

struct Step {
  std::string text;  // what a story calls it: "all_reduce sum float32 [4]"
  Action action;
};

enum class Outcome : std::uint8_t {
  kPasses,
  kDeadlock,     // ranks can never go on
  kMismatch,     // ranks called different things
  kTimeout,      // a call took longer than it may
  kLostRank,     // a rank crashed or fell silent
  kError,        // a rank's program or a call threw something else
  kWrongResult,  // a step's result is not what it expects
  kDivergence,   // what ranks must hold alike is not bit-identical: results, what they trained
  kLivelock,     // the event limit was reached
  kLiveness,     // ranks made no progress once the faults were over
};

inline constexpr std::size_t kOutcomeCount = static_cast<std::size_t>(Outcome::kLiveness) + 1;

// "passes", "lost rank", ...; all of them, by number.
const std::vector<std::string>& outcome_names();

struct Expectation {
  std::vector<Outcome> outcomes;  // each run has one of them
  std::optional<std::vector<int>> culprits;
  std::vector<std::string> operation;         // each must stand in the verdict
  std::optional<std::int64_t> guarded_works;  // how often a guard's work ran, over all ranks
};

// "messages", "whole"; by Fidelity.
const std::vector<std::string>& fidelity_names();
// "real", "hashed", "sizes"; by PayloadMode.
const std::vector<std::string>& payload_names();

// "round robin", "random", "pct", "exhaustive", "campaign"; by sim::Strategy.
const std::vector<std::string>& scheduler_names();

// Of the built-in model's optimizer and wrapper, on all ranks.
struct TrainingOptions {
  double momentum = 0.9;  // so that checkpoints hold more than parameters
  bool find_unused_parameters = false;
};

struct Program {
  RankSet ranks;
  Steps steps;
};

struct Scenario {
  std::string file;  // its base name
  std::string fact;
  std::string source;
  int world_size = 1;
  Placement placement;  // empty: all on one node
  Duration timeout = std::chrono::minutes(30);
  std::uint64_t event_limit = 0;
  bool checked = true;
  bool timeouts_end_deadlocks = false;
  Fidelity fidelity = Fidelity::kMessages;
  PayloadMode payload = PayloadMode::kReal;
  sim::LinkClass same_node;
  sim::LinkClass across_nodes;
  ComputeCost compute;  // of training
  TrainingOptions training;
  sim::FaultPlan faults;                // of every run
  std::optional<RankSet> drawn_faults;  // seeds; more faults, drawn anew for each of them
  std::optional<sim::Liveness> liveness;
  std::vector<sim::CampaignOptions> schedules;  // their seeds count from 0
  std::vector<Group> groups;                    // made in this order, by all ranks, at the start
  int groups_line = 1;                          // where the file names them
  std::vector<Program> programs;                // no rank is in two
  Expectation expect;
  std::vector<std::string> probes;  // each must be hit in one run or more
  std::uint64_t digest = 0;         // of all that a run depends on, but for faults and schedules

  // Every rank has one.
  const Steps& program_of(int rank) const;
  // How many ranks make the call.
  int size_of(const CallStep& call) const;
  // The rank in the call's group of a rank of the world. Requires: it is in the group.
  int rank_in_group(const CallStep& call, int rank) const;
};

}  // namespace ddproof::scenario
