// Gloo's all-reduce algorithms on simulated ranks against their formulas (ORACLES.md section 10):
// messages and bytes of every rank exactly, for every world size up to 128, and the virtual time of
// one call exactly where it has a closed form in the port model (simulator/network.h).
//
// Gloo's ring is not the textbook's: it cuts each rank's chunk into two or more segments, of at
// most 1 MiB, and keeps two of them in flight, so it sends at least 2 * 2(p-1) messages, and the
// latency of one segment hides the transfer of the other. Its bcube is halving and doubling with
// groups of two as long as two divides p; the odd rest of p is one group in which everybody talks
// to everybody, also to say nothing: empty parts are messages of no bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include "backends/sim/sim_world.h"
#include "simulator/stack.h"
#include "tests/unit/reduction_models.h"

namespace ddproof {
namespace {

constexpr int kModelRanksMax = 128;

// Each rank sends every chunk but one in each of the two phases: but its own, which it reduces;
// then but that of the rank before it, which is whom it sends to.
Traffic ring_traffic(int rank, int ranks, std::uint64_t count) {
  const RingCut cut = cut_of_all_reduce(ranks, count);
  Traffic sum;
  for (const int skipped : {rank, rank - 1}) {
    for (int chunk = 0; chunk < ranks; ++chunk) {
      if (chunk == (skipped + ranks) % ranks) continue;
      const Traffic part = cut.chunk(static_cast<std::uint64_t>(chunk));
      sum.messages += part.messages;
      sum.bytes += part.bytes;
    }
  }
  return sum;
}

Traffic bcube_traffic(int rank, int ranks, std::uint64_t count) {
  Traffic sum;
  int distance = 1;
  std::uint64_t length = count;
  for (const int group : bcube_groups(ranks)) {
    const auto place = static_cast<std::uint64_t>(rank / distance % group);
    const auto peers = static_cast<std::uint64_t>(group - 1);
    const std::uint64_t chunk = divide_up(length, peers + 1);
    const std::uint64_t mine = std::min(chunk, length - std::min(length, place * chunk));
    sum.messages += 2 * peers;
    sum.bytes += (length - mine + peers * mine) * kElement;  // there the others' parts, back mine
    distance *= group;
    length = mine;
  }
  return sum;
}

Traffic traffic_of(AllReduceAlgorithm algorithm, int rank, int ranks, std::uint64_t count) {
  if (ranks == 1) return {};
  return algorithm == AllReduceAlgorithm::kRing ? ring_traffic(rank, ranks, count)
                                                : bcube_traffic(rank, ranks, count);
}

sim::Report run_all_reduce(AllReduceAlgorithm algorithm, int ranks, std::uint64_t count,
                           const Net& net, sim::Scheduler& scheduler, std::uint64_t seed = 0) {
  static sim::StackPool stacks;  // for hundreds of runs
  SimWorldOptions options;
  options.stacks = &stacks;
  options.world.seed = seed;
  options.world.world_size = ranks;
  options.world.placement = net.placement(ranks);
  options.same_node = net.same_node;
  options.across_nodes = kFar;
  options.scheduler = &scheduler;
  options.all_reduce = algorithm;
  const sim::Report report = run_sim_world(options, [&](RankContext& rank) {
    std::vector<float> values(count, 1);
    rank.group.all_reduce(Buffer::of(std::span(values)))->wait();
    EXPECT_EQ(values, std::vector<float>(count, static_cast<float>(ranks)));
  });
  rethrow(report);
  return report;
}

sim::Report run_all_reduce(AllReduceAlgorithm algorithm, int ranks, std::uint64_t count,
                           const Net& net) {
  sim::RoundRobin in_order;
  return run_all_reduce(algorithm, ranks, count, net, in_order);
}

// Returns the virtual time of one call.
sim::Time expect_traffic(AllReduceAlgorithm algorithm, int ranks, std::uint64_t count,
                         const sim::LinkClass& link = kNear) {
  const sim::Report report = run_all_reduce(algorithm, ranks, count, {link});
  for (int rank = 0; rank < ranks; ++rank) {
    const sim::RankReport& seen = report.ranks[rank];
    const Traffic expected = traffic_of(algorithm, rank, ranks, count);
    EXPECT_EQ(seen.messages_sent, expected.messages)
        << "rank " << rank << " of " << ranks << ", " << count << " elements";
    EXPECT_EQ(seen.bytes_sent, expected.bytes)
        << "rank " << rank << " of " << ranks << ", " << count << " elements";
  }
  EXPECT_EQ(report.virtual_time, all_reduce_model(algorithm, ranks, count, {link}).time())
      << ranks << " ranks, " << count << " elements";
  return report.virtual_time;
}

TEST(SimAllReduceModel, TheFormulasAreTheTextbooksWhereTheRanksDivideTheData) {
  for (int ranks = 2; ranks <= kModelRanksMax; ++ranks) {
    const auto n = static_cast<std::uint64_t>(ranks);
    const std::uint64_t bytes = 2 * (n - 1) * 8 * kElement;  // 2 (p-1)/p of 8 p elements
    EXPECT_EQ(ring_traffic(0, ranks, 8 * n), (Traffic{4 * (n - 1), bytes}));
    EXPECT_EQ(bcube_traffic(0, ranks, 8 * n).bytes, bytes);
    if (!std::has_single_bit(n)) continue;
    EXPECT_EQ(bcube_traffic(0, ranks, 8 * n).messages, 2u * std::countr_zero(n));
  }
}

// Two segments are in flight: the next pair starts when the latency and one transfer have passed,
// or when the port is free again.
sim::Time ring_time(int ranks, std::uint64_t count, const sim::LinkClass& link) {
  if (ranks == 1) return 0;
  const RingCut cut = cut_of_all_reduce(ranks, count);
  const sim::Time transfer = link.transfer_time(cut.segment);
  const sim::Time pair = std::max(link.latency + transfer, 2 * transfer);
  const auto last = (ranks - 1) * static_cast<sim::Time>(cut.segments_per_chunk) - 1;
  return 2 * (last / 2 * pair + link.latency + (1 + last % 2) * transfer);
}

TEST(SimAllReduceModel, RingSendsAndTakesWhatItsFormulasSayAtEveryWorldSize) {
  constexpr auto kRing = AllReduceAlgorithm::kRing;
  for (int ranks = 1; ranks <= kModelRanksMax; ++ranks) {
    expect_traffic(kRing, ranks, 1);
    expect_traffic(kRing, ranks, 97);
    const std::uint64_t count = 8 * static_cast<std::uint64_t>(ranks);
    for (const sim::LinkClass& link : {kNear, kThin}) {
      EXPECT_EQ(expect_traffic(kRing, ranks, count, link), ring_time(ranks, count, link)) << ranks;
    }
  }
  // Three segments of nearly 1 MiB to a chunk.
  EXPECT_EQ(expect_traffic(kRing, 4, 3 << 20), ring_time(4, 3 << 20, kNear));
  expect_traffic(kRing, 3, 2'000'000);
}

TEST(SimAllReduceModel, RingOverSeveralNodesRunsAtThePaceOfTheSlowerLinks) {
  for (const int nodes : {2, 3, 8}) {
    for (const int per_node : {1, 2, 4}) {
      const int ranks = nodes * per_node;
      const std::uint64_t count = 8 * static_cast<std::uint64_t>(ranks);
      for (const Net& net : {Net{kNear, per_node}, Net{kNear, 0, nodes}}) {
        const auto report = run_all_reduce(AllReduceAlgorithm::kRing, ranks, count, net);
        EXPECT_EQ(report.virtual_time, ring_time(ranks, count, kFar)) << ranks << " ranks, " << net;
      }
    }
  }
}

// 2 log2(p) latencies, and 2 (p-1)/p of the data through the port. With 2^k ranks on each node the
// first k steps stay on it when ranks fill nodes, and the last k when they take nodes in turns.
sim::Time bcube_time(int ranks, std::uint64_t count, const Net& net) {
  sim::Time time = 0;
  std::uint64_t bytes = count * kElement;
  for (int distance = 1; distance < ranks; distance *= 2) {
    const bool is_near = net.node_of(0) == net.node_of(distance);
    const sim::LinkClass& link = is_near ? net.same_node : kFar;
    bytes /= 2;
    time += 2 * (link.latency + link.transfer_time(bytes));
  }
  return time;
}

// In the group of the odd rest q everybody sends to everybody at once, by turns: 3(q-1) transfers
// pass a port before the last has arrived, of which 2(q-1) are its own.
sim::Time bcube_rest_time(int rest, const sim::LinkClass& link) {
  return rest == 1 ? 0 : 2 * link.latency + 3 * (rest - 1) * link.transfer_time(8 * kElement);
}

TEST(SimAllReduceModel, BcubeSendsAndTakesWhatItsFormulasSayAtEveryWorldSize) {
  constexpr auto kBcube = AllReduceAlgorithm::kBcube;
  for (int ranks = 1; ranks <= kModelRanksMax; ++ranks) {
    expect_traffic(kBcube, ranks, 1);
    expect_traffic(kBcube, ranks, 97);
    const std::uint64_t count = 8 * static_cast<std::uint64_t>(ranks);
    const int rest = ranks >> std::countr_zero(static_cast<unsigned>(ranks));
    for (const sim::LinkClass& link : {kNear, kThin}) {
      const sim::Time twos = bcube_time(ranks / rest, count, {link});
      EXPECT_EQ(expect_traffic(kBcube, ranks, count, link), twos + bcube_rest_time(rest, link))
          << ranks;
    }
  }
}

// Which fiber runs first at one point in time never shows in a time.
TEST(SimAllReduceModel, TakesTheSameTimeInEveryOrderOfFibers) {
  for (const auto algorithm : {AllReduceAlgorithm::kRing, AllReduceAlgorithm::kBcube}) {
    for (const int ranks : {3, 7, 12, 15}) {
      std::set<sim::Time> times;
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        sim::RandomWalk any_order;
        times.insert(
            run_all_reduce(algorithm, ranks, 97, {kThin, 2}, any_order, seed).virtual_time);
      }
      EXPECT_EQ(times.size(), 1u) << ranks;
    }
  }
}

TEST(SimAllReduceModel, BcubeOverSeveralNodesTakesItsClosedFormAtPowersOfTwo) {
  for (int ranks = 2; ranks <= kModelRanksMax; ranks *= 2) {
    for (int per_node = 1; per_node <= ranks; per_node *= 2) {
      const std::uint64_t count = 16 * static_cast<std::uint64_t>(ranks);
      for (const Net& net : {Net{kNear, per_node}, Net{kNear, 0, ranks / per_node}}) {
        const auto report = run_all_reduce(AllReduceAlgorithm::kBcube, ranks, count, net);
        EXPECT_EQ(report.virtual_time, bcube_time(ranks, count, net)) << ranks << " ranks, " << net;
      }
    }
  }
}

}  // namespace
}  // namespace ddproof
