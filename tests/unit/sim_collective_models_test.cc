// Gloo's collectives on simulated ranks against their algorithms (port_model.h): messages and bytes
// of every rank, and the virtual time of one call, all exactly. All-reduce has a file of its own.
//
// n ranks, S bytes of a rank, L latency, t the time of S bytes in a port. The closed forms hold
// with one link class; over several nodes the ports decide who waits for whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backends/sim/sim_world.h"
#include "simulator/stack.h"
#include "tests/unit/reduction_models.h"

namespace ddproof {
namespace {

constexpr int kWorldMax = 128;
constexpr Net kOneNode{};
constexpr Net kThinNode{kThin};
constexpr Net kNodesOfThree{kNear, 3};
constexpr Net kTwoInTurns{kNear, 0, 2};

using Bytes = std::vector<std::uint8_t>;
using Body = std::function<void(ProcessGroup&)>;

sim::Time log2_up(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

sim::Report run_call(int ranks, const Net& net, const Body& body,
                     AllReduceAlgorithm algorithm = AllReduceAlgorithm::kAuto) {
  static sim::StackPool stacks;  // for hundreds of runs
  SimWorldOptions options;
  options.stacks = &stacks;
  options.world.world_size = ranks;
  options.world.placement = net.placement(ranks);
  options.same_node = net.same_node;
  options.across_nodes = kFar;
  options.all_reduce = algorithm;
  const sim::Report report = run_sim_world(options, [&](RankContext& rank) { body(rank.group); });
  rethrow(report);
  return report;
}

// Each rank's counts and the time are the model's. Returns the time.
sim::Time expect_model(const PortModel& model, const sim::Report& report) {
  for (int rank = 0; rank < model.ranks(); ++rank) {
    const sim::RankReport& seen = report.ranks[rank];
    EXPECT_EQ(seen.messages_sent, model.traffic(rank).messages) << "rank " << rank;
    EXPECT_EQ(seen.bytes_sent, model.traffic(rank).bytes) << "rank " << rank;
  }
  EXPECT_EQ(report.virtual_time, model.time());
  return report.virtual_time;
}

// Calls it at every world size with one size; at many with several sizes, on thin
// links and over several nodes; at few with large ones.
void for_each_setting(const std::function<void(int, std::uint64_t, const Net&)>& check_in_scope) {
  const auto check = [&](int ranks, std::uint64_t size, const Net& net) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks, size " << size << ", " << net);
    check_in_scope(ranks, size, net);
  };
  for (int ranks = 1; ranks <= kWorldMax; ++ranks) check(ranks, 7, kThinNode);
  std::vector<int> some{63, 64, 65, 127, 128};
  for (int ranks = 1; ranks <= 33; ++ranks) some.push_back(ranks);
  for (const int ranks : some) {
    for (const std::uint64_t size : {0, 1, 8, 1001}) {
      for (const Net& net : {kOneNode, kNodesOfThree, kTwoInTurns}) check(ranks, size, net);
    }
  }
  for (const int ranks : {2, 3, 5, 8}) {
    for (const std::uint64_t size : {65'537, 1'300'001}) {
      for (const Net& net : {kThinNode, kNodesOfThree}) check(ranks, size, net);
    }
  }
}

// Closed forms have one link class.
void expect_closed(const Net& net, sim::Time time, sim::Time closed) {
  if (net.ranks_per_node == 0 && net.nodes_in_turns == 0) {
    EXPECT_EQ(time, closed);
  }
}

// Dissemination: in step k to the rank 2^k after it, from the rank 2^k before it.
TEST(SimCollectiveModels, BarrierTakesALatencyForEveryDoubling) {
  for (int ranks = 1; ranks <= kWorldMax; ++ranks) {
    for (const Net& net : {kOneNode, kNodesOfThree, Net{kNear, 8}, kTwoInTurns}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << net);
      PortModel model(ranks, net);
      for (int distance = 1; distance < ranks; distance *= 2) {
        std::vector<Message> step;
        for (int rank = 0; rank < ranks; ++rank)
          step.push_back({rank, (rank + distance) % ranks, 0});
        model.exchange(step);
      }
      const auto report =
          run_call(ranks, net, [](ProcessGroup& group) { group.barrier()->wait(); });
      const sim::Time time = expect_model(model, report);
      EXPECT_EQ(report.messages, static_cast<std::uint64_t>(ranks * log2_up(ranks)));
      EXPECT_EQ(report.bytes, 0u);
      expect_closed(net, time, log2_up(ranks) * net.same_node.latency);
      if (net.nodes_in_turns == 2 && ranks % 2 == 0) {  // only the first step leaves the node
        EXPECT_EQ(time, kFar.latency + (log2_up(ranks) - 1) * kNear.latency);
      }
    }
  }
}

// Ours: a byte from each rank to rank 0, which then sends each a byte for every rank.
TEST(SimCollectiveModels, MonitoredBarrierGoesToRankZeroAndBack) {
  for (int ranks = 1; ranks <= kWorldMax; ++ranks) {
    for (const Net& net : {kOneNode, kThinNode, kNodesOfThree, kTwoInTurns}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << net);
      const auto n = static_cast<std::uint64_t>(ranks);
      PortModel model(ranks, net);
      std::vector<Message> tokens, verdicts;
      for (int rank = 1; rank < ranks; ++rank) {
        tokens.push_back({rank, 0, 1});
        verdicts.push_back({0, rank, n});
      }
      model.exchange(tokens);
      model.exchange(verdicts);
      const auto report =
          run_call(ranks, net, [](ProcessGroup& group) { group.monitored_barrier()->wait(); });
      const sim::Time time = expect_model(model, report);
      EXPECT_EQ(report.messages, 2 * (n - 1));
      EXPECT_EQ(report.bytes, (n - 1) * (n + 1));
      const sim::LinkClass& link = net.same_node;
      const sim::Time transfers = link.transfer_time(1) + link.transfer_time(n);
      expect_closed(net, time, ranks == 1 ? 0 : 2 * link.latency + (ranks - 1) * transfers);
    }
  }
}

// A binomial tree, from the near to the far: a rank that is 2^k or more after the root, but less
// than 2^(k+1), sends to those 2^(k+1), 2^(k+2), ... after it, all at once when it has the data.
PortModel broadcast_model(int ranks, std::uint64_t bytes, int root, const Net& net) {
  PortModel model(ranks, net);
  if (bytes == 0) return model;
  for (int place = 0; place < ranks; ++place) {
    const int rank = (place + root) % ranks;
    sim::Time done = model.at(rank);
    for (int distance = static_cast<int>(std::bit_ceil(static_cast<unsigned>(place) + 1));
         place + distance < ranks; distance *= 2) {
      const int to = (place + distance + root) % ranks;
      model.at(to) = model.deliver({rank, to, bytes}, model.at(rank));
      done = std::max(done, model.at(to));
    }
    model.at(rank) = done;
  }
  return model;
}

// A rank waits a latency for each bit of its distance to the root that is set, and a transfer for
// each bit up to the highest one: the sends of a rank pass its port one after another.
sim::Time broadcast_time(int ranks, std::uint64_t bytes, const sim::LinkClass& link) {
  sim::Time time = 0;
  for (unsigned place = 0; bytes > 0 && place < static_cast<unsigned>(ranks); ++place) {
    time = std::max(time, std::popcount(place) * link.latency +
                              std::bit_width(place) * link.transfer_time(bytes));
  }
  return time;
}

TEST(SimCollectiveModels, BroadcastGoesAlongABinomialTree) {
  for_each_setting([](int ranks, std::uint64_t bytes, const Net& net) {
    const int root = ranks / 3;
    const auto report = run_call(ranks, net, [&](ProcessGroup& group) {
      Bytes data(bytes);
      group.broadcast(Buffer::of(std::span(data)), root)->wait();
    });
    const sim::Time time = expect_model(broadcast_model(ranks, bytes, root, net), report);
    const std::uint64_t messages = bytes == 0 ? 0 : static_cast<std::uint64_t>(ranks) - 1;
    EXPECT_EQ(report.messages, messages);
    EXPECT_EQ(report.bytes, messages * bytes);
    expect_closed(net, time, broadcast_time(ranks, bytes, net.same_node));
  });
}

// A ring: in n - 1 steps to the next rank, in two halves, of which the first is the smaller one.
TEST(SimCollectiveModels, AllGatherGoesAroundARingInHalves) {
  for_each_setting([](int ranks, std::uint64_t bytes, const Net& net) {
    const auto n = static_cast<std::uint64_t>(ranks);
    PortModel model(ranks, net);
    if (bytes > 0) {
      model.ring(1, 2 * (n - 1), [&](int, std::uint64_t round) { return (bytes + round % 2) / 2; });
    }
    const auto report = run_call(ranks, net, [&](ProcessGroup& group) {
      Bytes in(bytes), out(n * bytes);
      group.all_gather(ConstBuffer::of(std::span(in)), Buffer::of(std::span(out)))->wait();
    });
    const sim::Time time = expect_model(model, report);
    EXPECT_EQ(report.messages, bytes == 0 ? 0 : n * 2 * (n - 1));
    EXPECT_EQ(report.bytes, n * (n - 1) * bytes);
    if (bytes == 0 || bytes % 2 == 1 || ranks == 1) return;
    const sim::Time half = net.same_node.transfer_time(bytes / 2);
    const sim::Time step = std::max(net.same_node.latency + half, 2 * half);
    expect_closed(net, time, (ranks - 2) * step + net.same_node.latency + 2 * half);
  });
}

// All at once into the root's port or out of it, lower ranks first.
void expect_root_port_filled(Op op) {
  for_each_setting([op](int ranks, std::uint64_t bytes, const Net& net) {
    const auto n = static_cast<std::uint64_t>(ranks);
    const int root = ranks / 3;
    PortModel model(ranks, net);
    std::vector<Message> messages;
    for (int rank = 0; rank < ranks && bytes > 0; ++rank) {
      if (rank == root) continue;
      messages.push_back(op == Op::kGather ? Message{rank, root, bytes}
                                           : Message{root, rank, bytes});
    }
    model.exchange(messages);
    const auto report = run_call(ranks, net, [&](ProcessGroup& group) {
      Bytes part(bytes), whole(group.rank() == root ? n * bytes : 0);
      if (op == Op::kGather) {
        group.gather(ConstBuffer::of(std::span(part)), Buffer::of(std::span(whole)), root)->wait();
      } else {
        group.scatter(ConstBuffer::of(std::span(whole)), Buffer::of(std::span(part)), root)->wait();
      }
    });
    const sim::Time time = expect_model(model, report);
    const std::uint64_t sent = bytes == 0 ? 0 : n - 1;
    EXPECT_EQ(report.messages, sent);
    EXPECT_EQ(report.bytes, sent * bytes);
    const sim::LinkClass& link = net.same_node;
    expect_closed(net, time,
                  sent == 0 ? 0 : link.latency + (ranks - 1) * link.transfer_time(bytes));
  });
}

TEST(SimCollectiveModels, GatherFillsTheRootsPort) { expect_root_port_filled(Op::kGather); }

TEST(SimCollectiveModels, ScatterFillsTheRootsPort) { expect_root_port_filled(Op::kScatter); }

// Everybody to everybody, beginning with the next rank: in every turn each port has one message.
TEST(SimCollectiveModels, AllToAllFillsAllPorts) {
  for_each_setting([](int ranks, std::uint64_t bytes, const Net& net) {
    const auto n = static_cast<std::uint64_t>(ranks);
    PortModel model(ranks, net);
    std::vector<Message> messages;
    for (int away = 1; away < ranks && bytes > 0; ++away) {
      for (int rank = 0; rank < ranks; ++rank) {
        messages.push_back({rank, (rank + away) % ranks, bytes});
      }
    }
    model.exchange(messages);
    const auto report = run_call(ranks, net, [&](ProcessGroup& group) {
      Bytes in(n * bytes), out(n * bytes);
      group.all_to_all(ConstBuffer::of(std::span(in)), Buffer::of(std::span(out)))->wait();
    });
    const sim::Time time = expect_model(model, report);
    const std::uint64_t sent = bytes == 0 ? 0 : n * (n - 1);
    EXPECT_EQ(report.messages, sent);
    EXPECT_EQ(report.bytes, sent * bytes);
    const sim::LinkClass& link = net.same_node;
    expect_closed(net, time,
                  sent == 0 ? 0 : link.latency + (ranks - 1) * link.transfer_time(bytes));
  });
}

// Where the chunks are equal and have two segments each.
sim::Time reduce_time(int ranks, std::uint64_t count, const sim::LinkClass& link) {
  const RingCut cut = cut_of_reduce(ranks, count);
  const sim::Time transfer = link.transfer_time(cut.segment);
  const sim::Time step = std::max(link.latency + transfer, 2 * transfer);
  const sim::Time chunk = link.transfer_time(2 * cut.segment);
  return (ranks - 2) * step + link.latency + 2 * transfer + link.latency + (ranks - 1) * chunk;
}

TEST(SimCollectiveModels, ReduceIsHalfARingAndAGather) {
  for_each_setting([](int ranks, std::uint64_t count, const Net& net) {
    const int root = ranks / 3;
    const auto report = run_call(ranks, net, [&](ProcessGroup& group) {
      std::vector<float> data(count, 1);
      group.reduce(Buffer::of(std::span(data)), root)->wait();
    });
    expect_model(reduce_model(ranks, count, root, net), report);
  });
  for (int ranks = 2; ranks <= kWorldMax; ++ranks) {
    const auto n = static_cast<std::uint64_t>(ranks);
    const std::uint64_t count = 8 * n;
    const PortModel model = reduce_model(ranks, count, 0, kThinNode);
    EXPECT_EQ(model.time(), reduce_time(ranks, count, kThin));
    EXPECT_EQ(model.traffic(0), (Traffic{2 * (n - 1), (n - 1) * 8 * kElement}));
    EXPECT_EQ(model.traffic(1), (Traffic{2 * (n - 1) + 1, count * kElement}));
  }
}

// What Gloo's loop sends too much when a chunk has more than two segments.
TEST(SimCollectiveModels, ReduceSendsOneSegmentInVainWhenThereAreThree) {
  constexpr std::uint64_t kCount = 3 * kSegmentMax / kElement;  // of each of two chunks
  const PortModel model = reduce_model(2, 2 * kCount, 0, kOneNode);
  EXPECT_EQ(model.traffic(0), (Traffic{3 + 1, 4 * kSegmentMax}));
  const auto report = run_call(2, kOneNode, [](ProcessGroup& group) {
    std::vector<float> data(2 * kCount, 1);
    group.reduce(Buffer::of(std::span(data)), 0)->wait();
    const bool at_root = group.rank() == 0;
    EXPECT_EQ(data, std::vector<float>(2 * kCount, at_root ? 2.0f : 1.0f));
  });
  expect_model(model, report);
}

// An all-reduce of everything, of which each rank keeps its part.
TEST(SimCollectiveModels, ReduceScatterIsAnAllReduceOfTheWhole) {
  for (const auto algorithm : {AllReduceAlgorithm::kRing, AllReduceAlgorithm::kBcube}) {
    for_each_setting([algorithm](int ranks, std::uint64_t count, const Net& net) {
      const auto n = static_cast<std::uint64_t>(ranks);
      if (n * count * kElement > kSegmentMax / 8) return;  // copies of the whole take long
      const auto body = [&](ProcessGroup& group) {
        std::vector<float> in(n * count, 1), out(count);
        group.reduce_scatter(ConstBuffer::of(std::span(in)), Buffer::of(std::span(out)))->wait();
      };
      expect_model(all_reduce_model(algorithm, ranks, n * count, net),
                   run_call(ranks, net, body, algorithm));
    });
  }
}

// Few bytes of min and max at an odd part above 16 (tree.cc): up a binomial tree, and down it.
TEST(SimCollectiveModels, TheTreeTakesTwoMessagesForEveryDoubling) {
  for (int ranks = 17; ranks <= kWorldMax; ++ranks) {
    if (ranks >> std::countr_zero(static_cast<unsigned>(ranks)) <= 16) continue;
    for (const sim::LinkClass& link : {kNear, kThin}) {
      const auto report = run_call(ranks, {link}, [](ProcessGroup& group) {
        std::vector<float> data(9);
        group.all_reduce(Buffer::of(std::span(data)), ReduceOp::kMax)->wait();
      });
      EXPECT_EQ(report.messages, 2 * (static_cast<std::uint64_t>(ranks) - 1)) << ranks;
      const sim::Time step = link.latency + link.transfer_time(9 * kElement);
      EXPECT_EQ(report.virtual_time, 2 * log2_up(ranks) * step) << ranks;
    }
  }
}

}  // namespace
}  // namespace ddproof
