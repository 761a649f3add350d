#include "backends/sim/sim_world.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backends/sim/sim_connection.h"
#include "backends/sim/sim_files.h"
#include "backends/sim/whole_calls.h"
#include "simulator/plan_faults.h"
#include "simulator/wait_list.h"

namespace ddproof {
namespace {

void check(const SimWorldOptions& options) {
  const WorldOptions& world = options.world;
  if (world.world_size < 1) {
    throw ConfigError("world size is " + std::to_string(world.world_size) +
                      "; sim takes 1 or more");
  }
  const Placement& placement = world.placement;
  if (!placement.empty() && placement.size() != static_cast<std::size_t>(world.world_size)) {
    throw ConfigError("the placement has the nodes of " + std::to_string(placement.size()) +
                      (placement.size() == 1 ? " rank" : " ranks") + ", the world size is " +
                      std::to_string(world.world_size));
  }
  const auto wrong = std::ranges::find_if(placement, [](int node) { return node < 0; });
  if (wrong != placement.end()) {
    throw ConfigError("rank " + std::to_string(wrong - placement.begin()) + " is on node " +
                      std::to_string(*wrong) + "; nodes count from 0");
  }
  if (world.timeout <= Duration::zero()) {
    throw ConfigError("timeout is " + std::to_string(world.timeout.count()) +
                      " ns; it must be above 0");
  }
  try {
    sim::check_fault_plan(options.faults, world.world_size);
  } catch (const std::invalid_argument& error) {
    throw ConfigError(error.what());
  }
}

// A rank that was stuck has the simulator's error; callers know CommError.
std::exception_ptr as_comm_error(const std::exception_ptr& error) {
  try {
    return with_comm_errors([&]() -> std::exception_ptr { std::rethrow_exception(error); });
  } catch (...) {
    return std::current_exception();
  }
}

sim::NetworkOptions network_options(const SimWorldOptions& options) {
  return {options.world.placement, options.same_node, options.across_nodes};
}

class World {
 public:
  World(const SimWorldOptions& options, const std::function<void(RankContext&)>& body)
      : options_(options),
        body_(body),
        faults_(options.faults),
        simulation_({.ranks = options.world.world_size,
                     .seed = options.world.seed,
                     .event_count_max = options.event_count_max,
                     .patience_runs_out = options.timeouts_end_deadlocks,
                     .scheduler = options.scheduler != nullptr ? options.scheduler : &random_walk_,
                     .faults = options.faults.empty() ? nullptr : &faults_,
                     .trace = options.trace,
                     .stacks = options.stacks,
                     .observer = options.observer,
                     .liveness = options.liveness}),
        network_(simulation_, network_options(options)),
        fabric_(simulation_, network_, options.payload),
        own_files_(simulation_, options.disk != nullptr ? *options.disk : own_disk_),
        group_options_{"sim", std::make_shared<Capabilities>(sim_capabilities()),
                       options.world.timeout, options.all_reduce},
        ended_key_(simulation_.new_object()),
        all_ended_(simulation_) {
    std::vector<int> everybody(static_cast<std::size_t>(simulation_.ranks()));
    for (std::size_t rank = 0; rank < everybody.size(); ++rank)
      everybody[rank] = static_cast<int>(rank);
    world_group_ = &fabric_.group(0, "world", everybody);
    body_ended_.resize(everybody.size());
    const bool is_plain = options.faults.empty() && options.observer == nullptr;
    if (options.fidelity == Fidelity::kWhole && is_plain) {
      whole_calls_.emplace(simulation_, network_options(options));
      fabric_.set_whole_calls(&*whole_calls_);
    }
    faults_.watch(simulation_);
    simulation_.on_crash([this](int rank) { end_body(rank); });
  }

  sim::Report run() {
    if (options_.world.files != nullptr) simulation_.note_uncovered("files outside the simulator");
    for (int rank = 0; rank < simulation_.ranks(); ++rank) {
      simulation_.spawn(rank, "main", [this, rank] { run_rank(rank); });
    }
    sim::Report report = simulation_.run();
    report.faults_fired = faults_.fired();
    for (sim::RankReport& rank : report.ranks) {
      if (rank.error) rank.error = as_comm_error(rank.error);
    }
    return report;
  }

 private:
  // However the body ends, the others may count on it.
  struct BodyEnd {
    World& world;
    int rank;
    ~BodyEnd() { world.end_body(rank); }
  };

  void run_rank(int rank) {
    FileSystem& files = options_.world.files != nullptr ? *options_.world.files : own_files_;
    // On the heap, so that a rank that waits in a call needs one page of stack.
    const auto runtime = std::make_unique<SimRuntime>(simulation_, rank, files,
                                                      launcher_environment(options_.world, rank));
    Endpoint& endpoint = world_group_->endpoints[static_cast<std::size_t>(rank)];
    const auto group = std::make_unique<GlooProcessGroup>(std::make_unique<SimConnection>(endpoint),
                                                          *runtime, group_options_);
    {
      const BodyEnd end{*this, rank};
      RankContext context{*group, *runtime};
      body_(context);
    }
    stay();
  }

  void end_body(int rank) {
    if (std::exchange(body_ended_[static_cast<std::size_t>(rank)], 1) != 0) return;
    simulation_.touch(ended_key_, sim::Access::kAdd);
    // As an event, so that it makes no difference which rank is the last.
    if (++bodies_ended_ < simulation_.ranks()) return;
    simulation_.schedule(simulation_.now(), sim::action_of<&World::end_stay>(*this));
  }

  void end_stay(std::uint64_t) {
    all_have_ended_ = true;
    all_ended_.wake_all(simulation_);
  }

  // Until all bodies have ended, or no other rank can go on. While a body waits this never ends, so
  // nobody need count on what comes after.
  void stay() {
    const sim::WaitReason reason{
        .what = "the other ranks' end", .kind = sim::WaitKind::kIdle, .is_local = true};
    try {
      while (!all_have_ended_) all_ended_.wait(simulation_, reason);
    } catch (const sim::RankKilled&) {
      // The run is over because a silent rank never ends: this one has returned all the same.
    }
  }

  const SimWorldOptions& options_;
  const std::function<void(RankContext&)>& body_;
  sim::RandomWalk random_walk_;
  sim::PlanFaults faults_;
  sim::Simulation simulation_;
  sim::Network network_;
  Fabric fabric_;
  std::optional<WholeCalls> whole_calls_;
  sim::Disk own_disk_;
  SimFileSystem own_files_;
  GlooGroupOptions group_options_;
  Group* world_group_;
  std::vector<char> body_ended_;
  int bodies_ended_ = 0;
  bool all_have_ended_ = false;
  sim::ObjectKey ended_key_;
  sim::WaitList all_ended_;
};

}  // namespace

sim::Report run_sim_world(const SimWorldOptions& options,
                          const std::function<void(RankContext&)>& body) {
  check(options);
  return World(options, body).run();
}

EnvironmentMap launcher_environment(const WorldOptions& world, int rank) {
  const int local_size = local_size_of(world.placement, world.world_size, rank);
  return {{"GROUP_RANK", std::to_string(node_of(world.placement, rank))},
          {"LOCAL_RANK", std::to_string(local_rank_of(world.placement, rank))},
          {"LOCAL_WORLD_SIZE", std::to_string(local_size)},
          {"MASTER_ADDR", "node0"},
          {"MASTER_PORT", "29500"},
          {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(world.world_size)}};
}

void rethrow(const sim::Report& report) {
  if (report.verdict == sim::Verdict::kEventLimit) throw sim::EventLimitError(report.verdict_text);
  std::vector<std::exception_ptr> errors;
  for (const sim::RankReport& rank : report.ranks) errors.push_back(rank.error);
  rethrow_root_cause(errors);
}

WorldReport to_world_report(const sim::Report& report) {
  return {.digest = report.digest,
          .virtual_time = Duration(report.virtual_time),
          .messages = report.messages,
          .bytes = report.bytes,
          .switches = report.switches};
}

Capabilities sim_capabilities() {
  Capabilities result = gloo_capabilities();
  result.virtual_time = true;
  result.tells_deadlocks = true;
  return result;
}

}  // namespace ddproof
