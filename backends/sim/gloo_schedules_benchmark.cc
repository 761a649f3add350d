// How many schedules one core checks per second when 8 ranks do 3 collectives over the real Gloo:
// barrier, all-reduce, broadcast, results checked, worlds made and destroyed each time.
// Target: 10,000 schedules per second.
#include <array>
#include <cstdio>
#include <span>
#include <stdexcept>

#include "backends/local/os_measure.h"
#include "backends/sim/sim_world.h"
#include "simulator/pct.h"
#include "simulator/recorder.h"

namespace ddproof {
namespace {

constexpr int kRanks = 8;
constexpr int kRounds = 5;
constexpr int kSchedules = 2'000;
constexpr double kTarget = 10'000;

void three_collectives(RankContext& rank) {
  std::array<float, 4> values{1, 2, 3, 4};
  rank.group.barrier()->wait();
  rank.group.all_reduce(Buffer::of(std::span(values)))->wait();
  rank.group.broadcast(Buffer::of(std::span(values)), 3)->wait();
  if (values[3] != 4 * kRanks) throw std::runtime_error("wrong sum");
}

void print_row(const char* name, sim::Scheduler& scheduler) {
  sim::StackPool stacks;
  sim::Recorder recorder(scheduler);
  SimWorldOptions options;
  options.world.world_size = kRanks;
  options.scheduler = &recorder;
  options.stacks = &stacks;
  std::uint64_t switches = 0;
  const Summary rate = measure_rate(kRounds, kSchedules, [&](int i) {
    options.world.seed = static_cast<std::uint64_t>(i);
    const sim::Report report = run_sim_world(options, three_collectives);
    rethrow(report);
    switches += report.switches;
  });
  std::printf("%-12s  %9.0f  %9.0f  %9.0f  %6.2f  %8.1f\n", name, rate.median, rate.min, rate.max,
              rate.median / kTarget, static_cast<double>(switches) / kRounds / kSchedules);
}

}  // namespace
}  // namespace ddproof

int main() {
  using namespace ddproof;
  std::printf(
      "schedules per CPU second, %d ranks, 3 collectives over Gloo, 5 runs of %d; target %.0f\n",
      kRanks, kSchedules, kTarget);
  std::printf("scheduler        median        min        max  /target  switches\n");
  sim::RoundRobin round_robin;
  print_row("round robin", round_robin);
  sim::RandomWalk random_walk;
  print_row("random walk", random_walk);
  sim::Pct pct(3, 200);
  print_row("pct of 3", pct);
}
