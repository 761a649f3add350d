// What a deadlock verdict costs: from the moment when all ranks wait until it is told, by how they
// wait. Targets: 1 ms, and 50 ms at 1,024 ranks.
#include <cstdio>
#include <string>
#include <vector>

#include "backends/local/os_measure.h"
#include "simulator/verdict.h"
#include "simulator/wait_graph.h"

namespace {

using namespace ddproof::sim;

constexpr int kRounds = 5;

using Targets = std::vector<int> (*)(int rank, int ranks);

std::vector<int> next_rank(int rank, int ranks) { return {(rank + 1) % ranks}; }
std::vector<int> partner(int rank, int) { return {rank ^ 1}; }
std::vector<int> missing_rank(int, int ranks) { return {ranks}; }
std::vector<int> two_ranks(int rank, int ranks) {
  return {(rank + 1) % ranks, (rank + ranks / 2) % ranks};
}
std::vector<int> all_others(int rank, int ranks) {
  std::vector<int> others;
  for (int other = 0; other < ranks; ++other) {
    if (other != rank) others.push_back(other);
  }
  return others;
}

void print_row(const char* name, int ranks, Targets targets, bool any = false) {
  std::vector<RankWait> waits;
  for (int rank = 0; rank < ranks; ++rank) {
    waits.push_back({.rank = rank,
                     .what = "all_reduce #1",
                     .site = "x.cc:1",
                     .ranks = targets(rank, ranks),
                     .any = any,
                     .meeting = ranks,
                     .call = "all_reduce #1"});
  }
  const std::vector<std::string_view> fates(static_cast<std::size_t>(ranks) + 1, "has returned");
  const int repeats = ranks > 100 ? 3 : 1'000;
  std::size_t letters = 0;
  const ddproof::Summary rate = ddproof::measure_rate(kRounds, repeats, [&](int) {
    const DeadlockCause cause = find_cause(waits);
    letters += describe_deadlock(0, waits, cause, fates).size();
  });
  const double target = ranks > 100 ? 50 : 1;
  std::printf("%-34s  %5d  %9.3f  %8.3f  %6zu\n", name, ranks, 1e3 / rate.median,
              1e3 / rate.median / target, letters / static_cast<std::size_t>(kRounds * repeats));
}

}  // namespace

int main() {
  std::printf("a verdict in ms of CPU time, median of %d; targets 1 ms, 50 ms at 1,024 ranks\n",
              kRounds);
  std::printf("who waits for whom                  ranks         ms   /target  letters\n");
  for (const int ranks : {8, 1'024}) {
    print_row("all for one that has returned", ranks, missing_rank);
    print_row("a ring", ranks, next_rank);
    print_row("pairs for each other", ranks, partner);
    print_row("all for any of two", ranks, two_ranks, true);
    print_row("all for all others", ranks, all_others);
  }
}
