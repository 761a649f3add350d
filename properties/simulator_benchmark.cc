// The simulator beside SimGrid's SMPI 3.32 (Debian: libsimgrid-dev), when it is installed: CPU time
// and peak memory of whole processes that do the same collectives, one after the other in each
// round; and what has no peer: proofs, verdicts. Arguments: the number of rounds, and a word that
// the names of the rows to run contain. Targets: in the rows. SMPI chooses the named algorithm; the
// payload of both lies in huge pages, one rank's beside the next one's.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/local/os_files.h"
#include "backends/local/os_measure.h"
#include "backends/sim/sim_world.h"
#include "properties/payload_memory.h"
#include "reference/launch/main_process_first.h"
#include "simulator/explorer.h"
#include "simulator/trace.h"

namespace ddproof {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What both sides do.
struct Row {
  const char* name;
  int ranks;
  Op op;
  std::size_t bytes;
  int times;
  AllReduceAlgorithm algorithm;
  PayloadMode payload;
  Fidelity fidelity;
  const char* smpi;  // its option for the same algorithm; null: it cannot do that
  const char* target;
};

constexpr auto kRing = AllReduceAlgorithm::kRing;
constexpr auto kBcube = AllReduceAlgorithm::kBcube;
constexpr auto kReal = PayloadMode::kReal;
constexpr auto kSizeOnly = PayloadMode::kSizeOnly;
constexpr auto kMessages = Fidelity::kMessages;
constexpr std::size_t kMiB = 1 << 20;

const std::vector<Row> kRows = {
    {"16 ranks, start to end: ring all-reduce of 4 KiB", 16, Op::kAllReduce, 4096, 1, kRing, kReal,
     kMessages, "--cfg=smpi/allreduce:lr", "10 ms wall"},
    {"1024 ranks, ring all-reduce of 1 MiB", 1024, Op::kAllReduce, kMiB, 1, kRing, kReal, kMessages,
     "--cfg=smpi/allreduce:lr", "SMPI / 10, 2.2 GiB"},
    {"the same, size-only", 1024, Op::kAllReduce, kMiB, 1, kRing, kSizeOnly, kMessages, nullptr,
     "3 M messages a second"},
    {"the same, size-only, 1000 times, as a whole", 1024, Op::kAllReduce, kMiB, 1000, kRing,
     kSizeOnly, Fidelity::kWhole, nullptr, ""},
    {"4096 ranks, 20 dissemination barriers", 4096, Op::kBarrier, 0, 20, kRing, kReal, kMessages,
     "--cfg=smpi/barrier:ompi_bruck", "1 M messages a second, 16 KiB a rank"},
    {"4096 ranks, 4 all-reduces of 4 KiB by doubling", 4096, Op::kAllReduce, 4096, 4, kBcube, kReal,
     kMessages, "--cfg=smpi/allreduce:rdb", "0.3 s each"},
};

// CPU time when the first rank begins its calls, after all have met, and when the last one is done.
struct Stretch {
  double begin = 0, end = 0;
};

sim::Report run_ours(const Row& row, int times, Stretch* stretch = nullptr) {
  sim::RoundRobin in_order;
  SimWorldOptions options;
  options.world.world_size = row.ranks;
  options.all_reduce = row.algorithm;
  options.payload = row.payload;
  options.fidelity = row.fidelity;
  options.scheduler = &in_order;
  const std::size_t count = row.bytes / sizeof(float);
  const PayloadMemory all =
      row.payload == kReal ? make_payload(count * static_cast<std::size_t>(row.ranks)) : nullptr;
  const std::unique_ptr<float[]> nobodys(new float[count]);  // never touched
  const sim::Report report = run_sim_world(options, [&](RankContext& rank) {
    float* const data = all == nullptr
                            ? nobodys.get()
                            : all.get() + static_cast<std::size_t>(rank.group.rank()) * count;
    if (stretch != nullptr) {
      rank.group.barrier()->wait();
      if (stretch->begin == 0) stretch->begin = cpu_seconds();
    }
    for (int i = 0; i < times; ++i) {
      const WorkPtr work =
          row.op == Op::kBarrier
              ? rank.group.barrier()
              : rank.group.all_reduce(
                    Buffer(data, element_of<float>(), Layout(static_cast<std::int64_t>(count))));
      work->wait();
    }
    if (stretch != nullptr) stretch->end = cpu_seconds();
  });
  rethrow(report);
  return report;
}

// Messages a CPU second while the collectives run, the making of the ranks left out.
void print_rate(const Row& row, int rounds) {
  std::vector<double> rates;
  Stretch none;
  const std::uint64_t before = run_ours(row, 0, &none).messages;
  std::uint64_t messages = 0;
  for (int round = 0; round < rounds; ++round) {
    Stretch stretch;
    messages = run_ours(row, row.times, &stretch).messages - before;
    rates.push_back(static_cast<double>(messages) / (stretch.end - stretch.begin) / 1e6);
  }
  const Summary rate = summarize(rates);
  std::printf("  %-8s %llu messages, %.2f M (%.2f to %.2f) a CPU second once all ranks are there\n",
              "", static_cast<unsigned long long>(messages), rate.median, rate.min, rate.max);
}

struct Cost {
  double cpu = 0, wall = 0, megabytes = 0;
};

// Of a process and what it starts. Its output goes nowhere.
Cost measure(const std::vector<std::string>& command) {
  std::fflush(stdout);
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    if (std::freopen("/dev/null", "w", stdout) != nullptr) execvp(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (status != 0) {
    std::fprintf(stderr, "%s failed\n", command.front().c_str());
    std::exit(1);
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), seconds_since(start),
          static_cast<double>(usage.ru_maxrss) / 1024};
}

// A cluster of 4,096 hosts with 5 us and 100 Gb/s between any two.
struct Cluster {
  explicit Cluster(const std::string& folder)
      : platform(folder + "/smpi_platform.xml"), hosts(folder + "/smpi_hosts") {
    write(platform,
          "<?xml version='1.0'?>\n"
          "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
          "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-4095\" "
          "speed=\"1Gf\" bw=\"12.5GBps\" lat=\"2.5us\"/></platform>\n");
    std::string names;
    for (int host = 0; host < 4096; ++host) names += "n" + std::to_string(host) + "\n";
    write(hosts, names);
  }
  static void write(const std::string& path, const std::string& text) {
    OsFileSystem().create(path)->append(std::as_bytes(std::span(text)));
  }
  std::string platform, hosts;
};

std::vector<std::string> smpi_command(const Cluster& cluster, const Row& row) {
  return {"smpirun",
          "-np",
          std::to_string(row.ranks),
          "-platform",
          cluster.platform,
          "-hostfile",
          cluster.hosts,
          "--cfg=smpi/simulate-computation:no",
          "--cfg=smpi/privatization:no",
          "--log=root.thresh:error",
          row.smpi,
          DDPROOF_SMPI_PEER,
          row.op == Op::kBarrier ? "barrier" : "all-reduce",
          std::to_string(row.bytes),
          std::to_string(row.times)};
}

struct Costs {
  std::vector<double> cpu, wall;
  double megabytes = 0;

  void add(const Cost& cost) {
    cpu.push_back(cost.cpu);
    wall.push_back(cost.wall);
    megabytes = std::max(megabytes, cost.megabytes);
  }
};

void print_side(const char* who, const Costs& costs) {
  const Summary cpu = summarize(costs.cpu), wall = summarize(costs.wall);
  std::printf("  %-8s CPU %9.1f ms (%.1f to %.1f), wall %9.1f ms (%.1f to %.1f), peak %7.1f MiB",
              who, cpu.median * 1e3, cpu.min * 1e3, cpu.max * 1e3, wall.median * 1e3,
              wall.min * 1e3, wall.max * 1e3, costs.megabytes);
}

void compare(std::size_t index, int rounds, const Cluster& cluster) {
  const Row& row = kRows[index];
  const bool has_peer = *DDPROOF_SMPI_PEER != '\0' && row.smpi != nullptr;
  Costs ours, theirs;
  for (int round = 0; round < rounds; ++round) {
    ours.add(measure({"/proc/self/exe", "--row", std::to_string(index)}));
    if (has_peer) theirs.add(measure(smpi_command(cluster, row)));
  }
  std::printf("%s (target: %s)\n", row.name, *row.target == '\0' ? "none" : row.target);
  print_side("ddproof", ours);
  const double cpu = summarize(ours.cpu).median;
  std::printf(", %.1f KiB a rank\n", ours.megabytes * 1024 / row.ranks);
  if (row.fidelity == kMessages) print_rate(row, rounds);
  if (has_peer) {
    print_side("SMPI", theirs);
    std::printf("\n  %-8s %.1f times the CPU time, %.2f times the memory of ddproof\n", "",
                summarize(theirs.cpu).median / cpu, theirs.megabytes / ours.megabytes);
  }
  std::fflush(stdout);
}

void print_summary(const char* what, const std::vector<double>& seconds, const char* target) {
  const Summary summary = summarize(seconds);
  std::printf("%s: %.3f ms (%.3f to %.3f), target %s\n", what, summary.median * 1e3,
              summary.min * 1e3, summary.max * 1e3, target);
  std::fflush(stdout);
}

// Without the start of a process, as a test makes its runs.
void time_run(const Row& row, int rounds) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    run_ours(row, row.times);
    seconds.push_back(seconds_since(start));
  }
  print_summary("16 ranks within a process, start to end", seconds, "10 ms");
}

void prove_guard(int ranks, int rounds) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const double start = cpu_seconds();
    sim::Explorer explorer;
    SimWorldOptions options;
    options.world.world_size = ranks;
    options.scheduler = &explorer;
    options.observer = &explorer;
    do {
      rethrow(run_sim_world(options, [](RankContext& rank) {
        main_process_first(
            {&rank.group, rank.group.rank()}, GuardScope::kWorld,
            [&] { rank.runtime.files().create("data"); }, [] {});
        std::vector<float> values(4, 1);
        rank.group.all_reduce(Buffer::of(values))->wait();
      }));
    } while (explorer.advance());
    if (!explorer.gap().empty()) std::printf("not proved: %s\n", explorer.gap().c_str());
    seconds.push_back(cpu_seconds() - start);
  }
  print_summary("proof of guard and all-reduce, 8 ranks, all orders", seconds, "1000 ms");
}

// When the last thing happened that could, and when the verdict was there.
struct VerdictClock final : sim::TraceSink {
  void on_event(const sim::Event& event) override {
    if (has_verdict) return;
    has_verdict = event.kind == sim::EventKind::kDeadlock;
    (has_verdict ? verdict : last) = Clock::now();
  }
  bool has_verdict = false;
  Clock::time_point last, verdict;
};

void time_verdict(int ranks, int rounds, const char* target) {
  std::vector<double> verdict, all;
  for (int round = 0; round < rounds; ++round) {
    VerdictClock clock;
    SimWorldOptions options;
    options.world.world_size = ranks;
    options.trace = &clock;
    const sim::Report report = run_sim_world(options, [](RankContext& rank) {
      if (rank.group.rank() != 0) rank.group.barrier()->wait();
    });
    all.push_back(seconds_since(clock.last));
    verdict.push_back(std::chrono::duration<double>(clock.verdict - clock.last).count());
    if (report.verdict != sim::Verdict::kDeadlock) std::printf("no deadlock?\n");
  }
  const std::string what = "hang of " + std::to_string(ranks) + " ranks, ";
  print_summary((what + "last event to verdict").c_str(), verdict, target);
  print_summary((what + "last event to the report, all ranks told").c_str(), all, target);
}

}  // namespace
}  // namespace ddproof

int main(int argc, char** argv) {
  using namespace ddproof;
  if (argc == 3 && std::string(argv[1]) == "--row") {
    const Row& row = kRows[std::stoul(argv[2])];
    run_ours(row, row.times);
    return 0;
  }
  const int rounds = argc > 1 ? std::stoi(argv[1]) : 5;
  const std::string word = argc > 2 ? argv[2] : "";
  const auto is_wanted = [&word](const char* name) {
    return std::string(name).find(word) != std::string::npos;
  };
  std::printf("median (min to max) of %d rounds, wall and CPU time of whole processes\n", rounds);
  if (*DDPROOF_SMPI_PEER == '\0') {
    std::printf("SMPI was not found when this was configured: install libsimgrid-dev to compare\n");
  }
  char folder[] = "/tmp/simulator_benchmark.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 3;
  const Cluster cluster(folder);
  for (std::size_t index = 0; index < kRows.size(); ++index) {
    if (is_wanted(kRows[index].name)) compare(index, rounds, cluster);
  }
  std::remove(cluster.platform.c_str());
  std::remove(cluster.hosts.c_str());
  rmdir(folder);
  if (is_wanted("start")) time_run(kRows.front(), rounds);
  if (is_wanted("proof")) prove_guard(8, rounds);
  if (!is_wanted("hang")) return 0;
  time_verdict(16, rounds, "1 ms");
  time_verdict(1024, rounds, "50 ms");
}
