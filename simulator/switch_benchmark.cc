// What a switch between ranks costs: every rank waits and is woken again and again, so that the
// scheduler's choice, the event record, the digest and both jumps are all in the number.
// Target: under 40 ns.
#include <cstdio>
#include <vector>

#include "backends/local/os_measure.h"
#include "simulator/simulation.h"

namespace {

using ddproof::cpu_seconds;
using ddproof::Summary;
using ddproof::sim::RandomWalk;
using ddproof::sim::Report;
using ddproof::sim::Scheduler;
using ddproof::sim::Simulation;

// Nanoseconds per switch when each of `ranks` ranks gives up its turn, 4 million turns in all.
double measure(int ranks, Scheduler* scheduler) {
  constexpr int kTurns = 4'000'000;
  Simulation simulation({.ranks = ranks, .scheduler = scheduler});
  for (int rank = 0; rank < ranks; ++rank) {
    simulation.spawn(rank, "main", [&simulation, ranks] {
      for (int turn = 0; turn < kTurns / ranks; ++turn) simulation.sleep(0);
    });
  }
  const double start = cpu_seconds();
  const Report report = simulation.run();
  return (cpu_seconds() - start) * 1e9 / static_cast<double>(report.switches);
}

void print_row(int ranks, const char* name, Scheduler* scheduler) {
  std::vector<double> runs;
  for (int i = 0; i < 5; ++i) runs.push_back(measure(ranks, scheduler));
  const Summary ns = ddproof::summarize(runs);
  std::printf("%6d  %-12s  %7.1f  %7.1f  %7.1f  %6.2f\n", ranks, name, ns.median, ns.min, ns.max,
              ns.median / 40);
}

}  // namespace

int main() {
  std::printf("CPU ns per switch, 5 runs; target 40\n");
  std::printf(" ranks  scheduler      median      min      max  /target\n");
  for (const int ranks : {2, 64, 1024, 4096}) {
    print_row(ranks, "round robin", nullptr);
    RandomWalk random_walk;
    print_row(ranks, "random walk", &random_walk);
  }
}
