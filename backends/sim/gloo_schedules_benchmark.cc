// How many schedules one core checks per second when 8 ranks do 3 collectives over the real Gloo:
// barrier, all-reduce, broadcast, results checked, worlds made and destroyed each time.
// Target: 10,000 schedules per second.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <span>
#include <stdexcept>
#include <vector>

#include "backends/sim/sim_world.h"
#include "simulator/pct.h"
#include "simulator/recorder.h"

namespace ddproof {
namespace {

constexpr int kRanks = 8;
constexpr int kSchedules = 2'000;
constexpr double kTarget = 10'000;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

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
  std::vector<double> rates;
  std::uint64_t switches = 0;
  for (int run = 0; run < 5; ++run) {
    const double start = cpu_seconds();
    switches = 0;
    for (int i = 0; i < kSchedules; ++i) {
      options.world.seed = static_cast<std::uint64_t>(i);
      const sim::Report report = run_sim_world(options, three_collectives);
      rethrow(report);
      switches += report.switches;
    }
    rates.push_back(kSchedules / (cpu_seconds() - start));
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%-12s  %9.0f  %9.0f  %9.0f  %6.2f  %8.1f\n", name, rates[2], rates[0], rates[4],
              rates[2] / kTarget, static_cast<double>(switches) / kSchedules);
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
