// How many schedules one core checks per second: 8 ranks hand a token round and yield, with the
// simulator's primitives only, under every kind of scheduler, worlds made and destroyed each time.
// Target: 100,000 schedules per second.
#include <cstdio>

#include "backends/local/os_measure.h"
#include "simulator/explorer.h"
#include "simulator/pct.h"
#include "simulator/recorder.h"
#include "simulator/simulation.h"
#include "simulator/wait_list.h"

namespace {

using namespace ddproof::sim;

constexpr int kRanks = 8;
constexpr int kRounds = 5;
constexpr int kSchedules = 20'000;
constexpr double kTarget = 100'000;

Report pass_token(std::uint64_t seed, Scheduler& scheduler, StackPool& stacks,
                  StepObserver* observer) {
  Simulation simulation({.ranks = kRanks,
                         .seed = seed,
                         .scheduler = &scheduler,
                         .stacks = &stacks,
                         .observer = observer});
  const ObjectKey token = simulation.new_object();
  WaitList waiters(simulation);
  int holder = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    simulation.spawn(rank, "main", [&, rank] {
      simulation.sleep(0);
      while (true) {
        simulation.touch(token, Access::kRead);
        if (holder == rank) break;
        waiters.wait(simulation, {.what = "token"});
      }
      simulation.touch(token, Access::kWrite);
      ++holder;
      waiters.wake_all(simulation);
    });
  }
  return simulation.run();
}

void print_row(const char* name, Scheduler& scheduler, Explorer* explorer = nullptr) {
  StackPool stacks;
  Recorder recorder(scheduler);
  std::uint64_t switches = 0;
  const ddproof::Summary rate = ddproof::measure_rate(kRounds, kSchedules, [&](int i) {
    switches += pass_token(static_cast<std::uint64_t>(i), recorder, stacks, explorer).switches;
    if (explorer != nullptr) explorer->advance();
  });
  std::printf("%-12s  %9.0f  %9.0f  %9.0f  %6.2f  %8.1f\n", name, rate.median, rate.min, rate.max,
              rate.median / kTarget, static_cast<double>(switches) / kRounds / kSchedules);
}

}  // namespace

int main() {
  std::printf("schedules per CPU second, %d ranks, 5 runs of %d; target %.0f\n", kRanks, kSchedules,
              kTarget);
  std::printf("scheduler        median        min        max  /target  switches\n");
  RoundRobin round_robin;
  print_row("round robin", round_robin);
  RandomWalk random_walk;
  print_row("random walk", random_walk);
  Pct pct(3, 40);
  print_row("pct of 3", pct);
  Explorer explorer;
  print_row("search", explorer, &explorer);
}
