#include "properties/guard_properties.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "backends/api/error.h"

namespace ddproof {
namespace {

constexpr const char* kPlantedFailure = "planted failure";

std::string show_guard(const GuardCase& c) {
  return fmt::format("nodes={} ranks_per_node={} scope={} failing_scope={} delays=[{}] seed={}",
                     c.nodes, c.ranks_per_node, c.scope == GuardScope::kNode ? "node" : "world",
                     c.failing_scope, fmt::join(c.delays, " "), c.seed);
}

int world_size_of(const GuardCase& c) { return c.nodes * c.ranks_per_node; }

int scopes_of(const GuardCase& c) { return c.scope == GuardScope::kNode ? c.nodes : 1; }

Duration delay(const GuardCase& c, int turn) {
  if (c.delays.empty()) return Duration::zero();
  return c.delays[static_cast<std::size_t>(turn) % c.delays.size()] *
         Duration(std::chrono::microseconds(100));
}

std::vector<std::string> classes_of_guard(const GuardCase& c) {
  std::vector<std::string> classes = {c.scope == GuardScope::kNode ? "per node" : "per world"};
  if (c.nodes > 1) classes.push_back("several nodes");
  if (c.ranks_per_node > 1) classes.push_back("ranks wait on their node");
  if (c.failing_scope >= 0) classes.push_back("work fails");
  if (std::ranges::any_of(c.delays, [](int d) { return d > 0; })) classes.push_back("delayed");
  return classes;
}

// What the ranks of one case did, shared by all of them.
class GuardRun {
 public:
  explicit GuardRun(const GuardCase& drawn)
      : case_(drawn),
        runs_(static_cast<std::size_t>(scopes_of(drawn))),
        wrong_(static_cast<std::size_t>(world_size_of(drawn))) {}

  void run_rank(RankContext& rank, const Guard& guard) {
    const int node = rank.group.rank() / case_.ranks_per_node;
    const GuardContext context{&rank.group, rank.group.rank() % case_.ranks_per_node};
    const int scope = case_.scope == GuardScope::kNode ? node : 0;
    rank.runtime.sleep_for(delay(case_, rank.group.rank()));
    std::string& wrong = wrong_[static_cast<std::size_t>(rank.group.rank())];
    try {
      guard(
          context, case_.scope, [&] { work(rank, scope); }, [&] { wrong = use(); });
      if (case_.failing_scope >= 0 && wrong.empty()) wrong = "together: did not learn of a failure";
    } catch (const ConfigError& e) {
      const bool planted = std::string(e.what()).find(kPlantedFailure) != std::string::npos;
      if (case_.failing_scope < 0 || !planted) wrong = std::string("threw: ") + e.what();
    }
  }

  std::string verdict() const {
    for (std::size_t rank = 0; rank < wrong_.size(); ++rank) {
      if (!wrong_[rank].empty()) return fmt::format("rank {}: {}", rank, wrong_[rank]);
    }
    for (std::size_t scope = 0; scope < runs_.size(); ++scope) {
      if (runs_[scope] == 1) continue;
      return fmt::format("once: the work of scope {} ran {} times", scope, runs_[scope].load());
    }
    return "";
  }

 private:
  void work(RankContext& rank, int scope) {
    ++runs_[static_cast<std::size_t>(scope)];
    rank.runtime.sleep_for(delay(case_, world_size_of(case_) + scope));
    if (scope == case_.failing_scope) throw ConfigError(kPlantedFailure);
    ++done_;
  }

  std::string use() const {
    if (case_.failing_scope >= 0) return "together: used the result of failed work";
    if (done_ >= scopes_of(case_)) return "";
    return fmt::format("before: used the result when {} of {} scopes were done", done_.load(),
                       scopes_of(case_));
  }

  const GuardCase& case_;
  std::vector<std::atomic<int>> runs_;  // by scope
  std::atomic<int> done_ = 0;
  std::vector<std::string> wrong_;  // by rank
};

rc::Gen<GuardCase> guard_cases(const PropertyWorld& world) {
  const int most = world.world_size_max;
  // One case in four fails; shrinks to none that does.
  const auto failing = rc::gen::resize(rc::kNominalSize, rc::gen::inRange(-3 * most, most));
  const auto parts = rc::gen::tuple(rc::gen::inRange(1, most + 1), rc::gen::inRange(1, most + 1),
                                    rc::gen::arbitrary<bool>(), failing,
                                    rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 8)),
                                    rc::gen::arbitrary<std::uint32_t>());
  return rc::gen::map(parts, [most](const auto& drawn) {
    const GuardScope scope = std::get<2>(drawn) ? GuardScope::kWorld : GuardScope::kNode;
    GuardCase c{std::get<0>(drawn), std::get<1>(drawn), scope,
                std::get<3>(drawn), std::get<4>(drawn), std::get<5>(drawn)};
    c.ranks_per_node = std::min(c.ranks_per_node, most / c.nodes);
    c.failing_scope = std::clamp(c.failing_scope, -1, scopes_of(c) - 1);
    return c;
  });
}

}  // namespace

void reference_guard(const GuardContext& context, GuardScope scope,
                     const std::function<void()>& work, const std::function<void()>& use) {
  main_process_first(context, scope, work, use);
}

std::string check_guard(const PropertyWorld& world, const GuardCase& drawn, const Guard& guard) {
  GuardRun run(drawn);
  run_ranks(world, world_size_of(drawn), drawn.seed, Checked::kYes,
            [&](RankContext& rank) { run.run_rank(rank, guard); });
  return run.verdict();
}

PropertyResult guard_works_first(const PropertyWorld& world, const PropertyOptions& options,
                                 Runtime& runtime, const Guard& guard) {
  const Property<GuardCase> property{
      "guard-works-first", guard_cases(world), show_guard, classes_of_guard,
      [&](const GuardCase& c) { return check_guard(world, c, guard); }};
  return run_property(property, options, runtime);
}

}  // namespace ddproof
