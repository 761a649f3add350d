// What Gloo's collectives cost on 1,024 simulated ranks: CPU time of the run, peak memory of a
// process that does nothing else, messages per second. "gloo" calls the library straight from the
// ranks' mains, "group" goes through a ProcessGroup and its task per rank.
// Targets: bcube all-reduce of 2,048 floats under 0.1 s and 100 MB, ring under 2 s, barrier under
// 0.05 s.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/local/os_measure.h"
#include "backends/sim/sim_world.h"
#include "backends/sim/transport.h"

namespace ddproof {
namespace {

constexpr int kRuns = 5;
constexpr std::size_t kFloats = 2048;

using Algorithm = gloo::AllreduceOptions::Algorithm;
using GlooBody = std::function<void(const std::shared_ptr<gloo::Context>&)>;

sim::Report run_gloo(int ranks, sim::Scheduler* scheduler, const GlooBody& body) {
  sim::Simulation simulation({.ranks = ranks, .scheduler = scheduler});
  sim::Network network(simulation, {});
  Fabric fabric(simulation, network);
  std::vector<int> everybody;
  for (int rank = 0; rank < ranks; ++rank) everybody.push_back(rank);
  Group& group = fabric.group(0, "world", everybody);
  for (int rank = 0; rank < ranks; ++rank) {
    simulation.spawn(rank, "main", [&body, &endpoint = group.endpoints[rank]] {
      body(make_gloo_context(endpoint));
    });
  }
  return simulation.run();
}

sim::Report run_group(int ranks, sim::Scheduler* scheduler, AllReduceAlgorithm algorithm,
                      const std::function<void(RankContext&)>& body) {
  SimWorldOptions options;
  options.world.world_size = ranks;
  options.scheduler = scheduler;
  options.all_reduce = algorithm;
  sim::Report report = run_sim_world(options, body);
  rethrow(report);
  return report;
}

GlooBody all_reduce(Algorithm algorithm) {
  return [algorithm](const std::shared_ptr<gloo::Context>& context) {
    std::vector<float> values(kFloats, 1);
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(algorithm);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  };
}

void gloo_barrier(const std::shared_ptr<gloo::Context>& context) {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

void group_all_reduce(RankContext& rank) {
  std::vector<float> values(kFloats, 1);
  rank.group.all_reduce(Buffer::of(std::span(values)))->wait();
}

void group_barrier(RankContext& rank) { rank.group.barrier()->wait(); }

struct Row {
  const char* name;
  double target_seconds;
  double target_megabytes;
  std::function<sim::Report(sim::Scheduler*)> run;
};

void measure(const Row& row, const char* scheduler_name, sim::Scheduler* scheduler) {
  std::vector<double> seconds;
  sim::Report report;
  for (int i = 0; i < kRuns; ++i) {
    const double start = cpu_seconds();
    report = row.run(scheduler);
    seconds.push_back(cpu_seconds() - start);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto [median, min, max] = summarize(seconds);
  std::printf("%-22s %-12s %8.1f %8.1f %8.1f %8.0f %6.2f %8.1f %8.0f %10llu %8.2f %8.2f\n",
              row.name, scheduler_name, median * 1e3, min * 1e3, max * 1e3,
              row.target_seconds * 1e3, median / row.target_seconds,
              static_cast<double>(usage.ru_maxrss) / 1e3, row.target_megabytes,
              static_cast<unsigned long long>(report.messages),
              static_cast<double>(report.messages) / median / 1e6,
              static_cast<double>(report.switches) / median / 1e6);
}

// In a process of its own, so that the peak memory is its own too.
void measure_alone(const Row& row) {
  for (const bool is_random : {false, true}) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      sim::RoundRobin round_robin;
      sim::RandomWalk random_walk;
      sim::Scheduler* scheduler = &round_robin;
      if (is_random) scheduler = &random_walk;
      measure(row, is_random ? "random walk" : "round robin", scheduler);
      std::fflush(stdout);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
}

}  // namespace
}  // namespace ddproof

int main(int argc, char** argv) {
  using namespace ddproof;
  const int ranks = argc > 1 ? std::stoi(argv[1]) : 1024;
  const std::vector<Row> rows = {
      {"gloo bcube", 0.1, 100,
       [=](auto* s) { return run_gloo(ranks, s, all_reduce(Algorithm::BCUBE)); }},
      {"gloo ring", 2, 100,
       [=](auto* s) { return run_gloo(ranks, s, all_reduce(Algorithm::RING)); }},
      {"gloo barrier", 0.05, 100, [=](auto* s) { return run_gloo(ranks, s, gloo_barrier); }},
      {"group bcube", 0.1, 100,
       [=](auto* s) { return run_group(ranks, s, AllReduceAlgorithm::kBcube, group_all_reduce); }},
      {"group ring", 2, 100,
       [=](auto* s) { return run_group(ranks, s, AllReduceAlgorithm::kRing, group_all_reduce); }},
      {"group barrier", 0.05, 100,
       [=](auto* s) { return run_group(ranks, s, AllReduceAlgorithm::kAuto, group_barrier); }},
  };
  std::printf(
      "%d ranks, all-reduce of %zu floats; whole run (ranks made, called, ended), CPU ms of "
      "%d runs\n",
      ranks, kFloats, kRuns);
  std::printf("%-22s %-12s %8s %8s %8s %8s %6s %8s %8s %10s %8s %8s\n", "what", "scheduler",
              "median", "min", "max", "target", "/tgt", "peak MB", "target", "messages", "M msg/s",
              "M sw/s");
  for (const Row& row : rows) measure_alone(row);
}
