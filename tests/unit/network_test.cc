// The network model against its closed forms, to the nanosecond (simulator/README.md).
#include "simulator/network.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <stdexcept>
#include <vector>

#include "simulator/wait_list.h"

namespace ddproof::sim {
namespace {

constexpr Time kLatency = 5'000;
constexpr std::uint64_t kBandwidth = 12'500'000'000;

// Ranks that send sizes only, each with a mailbox per sender.
class World {
 public:
  World(const SimulationOptions& options, const NetworkOptions& network)
      : simulation(options), network_(simulation, network), ranks_(options.ranks) {
    for (int i = 0; i < ranks_ * ranks_; ++i) boxes_.push_back(std::make_unique<Box>(*this));
  }

  void send(int from, int to, std::uint64_t bytes) {
    Box& b = box(from, to);
    b.sizes.push_back(bytes);
    network_.send(from, to, bytes, b.flow, action_of<&Box::arrive>(b, from * 1'000'000ull + to));
  }
  void receive(int from, int to) {
    Box& b = box(from, to);
    while (b.arrived == 0) b.waiting.wait(simulation, {.what = "receive"});
    --b.arrived;
  }
  Report run(const std::function<void(int)>& body) {
    for (int rank = 0; rank < ranks_; ++rank) {
      simulation.spawn(rank, "main", [&body, rank] { body(rank); });
    }
    return simulation.run();
  }

  Simulation simulation;

 private:
  struct Box {
    explicit Box(World& w) : world(w) {}
    void arrive(std::uint64_t pair) {
      world.network_.arrived(static_cast<int>(pair / 1'000'000), static_cast<int>(pair % 1'000'000),
                             sizes.front());
      sizes.pop_front();
      ++arrived;
      waiting.wake_all(world.simulation);
    }
    World& world;
    std::deque<std::uint64_t> sizes;
    int arrived = 0;
    Flow flow;
    WaitList waiting;
  };
  Box& box(int from, int to) { return *boxes_[static_cast<std::size_t>(from * ranks_ + to)]; }

  Network network_;
  int ranks_;
  std::vector<std::unique_ptr<Box>> boxes_;
};

NetworkOptions one_link_class() {
  return {.same_node = {kLatency, kBandwidth}, .across_nodes = {kLatency, kBandwidth}};
}

Time transfer(std::uint64_t bytes) { return LinkClass{0, kBandwidth}.transfer_time(bytes); }

Time run_ring(int n, std::uint64_t bytes, int steps,
              const NetworkOptions& options = one_link_class()) {
  World world({.ranks = n}, options);
  const auto chunk = bytes / static_cast<std::uint64_t>(n);
  return world
      .run([&](int rank) {
        for (int step = 0; step < steps; ++step) {
          world.send(rank, (rank + 1) % n, chunk);
          world.receive((rank + n - 1) % n, rank);
        }
      })
      .virtual_time;
}

TEST(Network, RingAllReduceTakesItsClosedForm) {
  // 2 (n - 1) (latency + S / (n B))
  for (const int n : {2, 3, 16, 64}) {
    const std::uint64_t bytes = 1 << 20;
    const Time step = kLatency + transfer(bytes / static_cast<std::uint64_t>(n));
    EXPECT_EQ(run_ring(n, bytes, 2 * (n - 1)), 2 * (n - 1) * step) << n;
  }
  EXPECT_EQ(run_ring(16, 1 << 20, 30), 307'260);
}

TEST(Network, RingAllGatherTakesItsClosedForm) {
  // (n - 1) (latency + S / (n B)), as reduce-scatter and pipelined broadcast do
  EXPECT_EQ(run_ring(8, 1 << 20, 7), 7 * (kLatency + transfer((1 << 20) / 8)));
}

TEST(Network, RecursiveDoublingTakesItsClosedForm) {
  // log2(n) (latency + S / B)
  World world({.ranks = 64}, one_link_class());
  const Report report = world.run([&](int rank) {
    for (int distance = 1; distance < 64; distance *= 2) {
      world.send(rank, rank ^ distance, 4096);
      world.receive(rank ^ distance, rank);
    }
  });
  EXPECT_EQ(report.virtual_time, 6 * (kLatency + transfer(4096)));
  EXPECT_EQ(report.virtual_time, 6 * 5'327);
  EXPECT_EQ(report.messages, 64u * 6);
}

TEST(Network, HalvingDoublingTakesItsClosedForm) {
  // 2 log2(n) latency + 2 (n - 1) / n S / B
  constexpr int kRanks = 16;
  constexpr std::uint64_t kBytes = 1 << 20;
  World world({.ranks = kRanks}, one_link_class());
  const Report report = world.run([&](int rank) {
    std::uint64_t bytes = kBytes;
    for (int distance = kRanks / 2; distance > 0; distance /= 2) {
      bytes /= 2;
      world.send(rank, rank ^ distance, bytes);
      world.receive(rank ^ distance, rank);
    }
    for (int distance = 1; distance < kRanks; distance *= 2) {
      world.send(rank, rank ^ distance, bytes);
      world.receive(rank ^ distance, rank);
      bytes *= 2;
    }
  });
  Time expected = 8 * kLatency;
  for (int part = 2; part <= kRanks; part *= 2) expected += 2 * transfer(kBytes / part);
  EXPECT_EQ(report.virtual_time, expected);
}

TEST(Network, DisseminationBarrierTakesItsClosedForm) {
  // ceil(log2 n) latency
  for (const int n : {2, 5, 64, 100}) {
    World world({.ranks = n}, one_link_class());
    int rounds = 0;
    for (int distance = 1; distance < n; distance *= 2) ++rounds;
    const Report report = world.run([&](int rank) {
      for (int distance = 1; distance < n; distance *= 2) {
        world.send(rank, (rank + distance) % n, 0);
        world.receive((rank + n - distance) % n, rank);
      }
    });
    EXPECT_EQ(report.virtual_time, rounds * kLatency) << n;
  }
}

TEST(Network, PortsPassOneMessageAtATime) {
  // Two senders to one receiver: the second message queues at the port in. One sender to two
  // receivers: the second queues at the port out.
  World in({.ranks = 3}, one_link_class());
  EXPECT_EQ(in.run([&](int rank) {
                if (rank > 0) in.send(rank, 0, 125'000);
              }).virtual_time,
            kLatency + 2 * 10'000);
  World out({.ranks = 3}, one_link_class());
  EXPECT_EQ(out.run([&](int rank) {
                 if (rank == 0) out.send(0, 1, 125'000), out.send(0, 2, 125'000);
               })
                .virtual_time,
            kLatency + 2 * 10'000);
}

TEST(Network, UsesTheLinkClassOfThePair) {
  NetworkOptions options = one_link_class();
  options.node_of_rank = {0, 0, 1, 1};
  options.same_node = {1'000, kBandwidth};
  World near({.ranks = 4}, options);
  EXPECT_EQ(near.run([&](int rank) {
                  if (rank == 0) near.send(0, 1, 0);
                })
                .virtual_time,
            1'000);
  World far({.ranks = 4}, options);
  EXPECT_EQ(far.run([&](int rank) {
                 if (rank == 1) far.send(1, 2, 0);
               })
                .virtual_time,
            kLatency);
}

// Each step takes what it received in the one before, so that a step waits for one hop only: how
// many of 30 in a row are across nodes is a matter of the placement.
TEST(Network, ARingPaysForEachHopThatLeavesItsNode) {
  constexpr int kRanks = 16, kSteps = 2 * (kRanks - 1);
  constexpr std::uint64_t kBytes = 1 << 18;  // no port is the bottleneck
  const LinkClass near{1'000, 4 * kBandwidth};
  const Time in_node = near.latency + near.transfer_time(kBytes / kRanks);
  const Time across = kLatency + transfer(kBytes / kRanks);
  const auto time_of = [&](int (*node_of)(int rank)) {
    NetworkOptions options = one_link_class();
    options.same_node = near;
    for (int rank = 0; rank < kRanks; ++rank) options.node_of_rank.push_back(node_of(rank));
    return run_ring(kRanks, kBytes, kSteps, options);
  };
  EXPECT_EQ(time_of([](int) { return 7; }), kSteps * in_node);
  EXPECT_EQ(time_of([](int rank) { return rank / 8; }), 4 * across + (kSteps - 4) * in_node);
  EXPECT_EQ(time_of([](int rank) { return rank % 2; }), kSteps * across);
}

TEST(Network, CountsMessagesAndBytesPerRank) {
  World world({.ranks = 2}, one_link_class());
  const Report report = world.run([&](int rank) {
    if (rank == 0) world.send(0, 1, 10), world.send(0, 1, 5);
  });
  EXPECT_EQ(report.messages, 2u);
  EXPECT_EQ(report.bytes, 15u);
  EXPECT_EQ(report.ranks[0].messages_sent, 2u);
  EXPECT_EQ(report.ranks[1].bytes_received, 15u);
  EXPECT_EQ(report.ranks[1].messages_sent, 0u);
}

TEST(Network, KeepsTheOrderOfAFlowUnderJitterAndDelays) {
  struct DelayFirst : FaultHook {
    MessageFate on_message(int, int, std::uint64_t, std::uint64_t number) override {
      return {.delay = number == 1 ? 1'000'000 : 0};
    }
  } hook;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    NetworkOptions options = one_link_class();
    options.jitter_max = 50'000;
    Simulation simulation({.ranks = 2, .seed = seed, .faults = &hook});
    Network network(simulation, options);
    struct Log {
      void add(std::uint64_t value) { values.push_back(value); }
      std::vector<std::uint64_t> values;
    } log;
    Flow flow;
    simulation.spawn(0, "main", [&] {
      for (std::uint64_t i = 0; i < 10; ++i)
        network.send(0, 1, 8, flow, action_of<&Log::add>(log, i));
    });
    simulation.run();
    EXPECT_EQ(log.values, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})) << seed;
  }
}

TEST(Network, DropsWhatTheFaultHookDropsAndWhatTheDeadSend) {
  struct DropAll : FaultHook {
    MessageFate on_message(int, int, std::uint64_t, std::uint64_t) override {
      return {.drop = true};
    }
  } hook;
  Simulation simulation({.ranks = 3, .faults = &hook});
  Network network(simulation, {});
  struct Never {
    void arrive(std::uint64_t) { FAIL() << "arrived"; }
  } never;
  Flow flow;
  simulation.spawn(0, "main", [&] {
    EXPECT_EQ(network.send(0, 1, 8, flow, action_of<&Never::arrive>(never)).arrival, kNever);
    simulation.crash(2);
    EXPECT_EQ(network.send(2, 1, 8, flow, action_of<&Never::arrive>(never)).arrival, kNever);
  });
  simulation.spawn(2, "main", [&] { simulation.sleep(1); });
  EXPECT_EQ(simulation.run().messages, 1u);
}

TEST(Network, RefusesALinkWithoutBandwidth) {
  Simulation simulation({});
  EXPECT_THROW(Network(simulation, {.same_node = {0, 0}}), std::invalid_argument);
  EXPECT_THROW(Network(simulation, {.node_of_rank = {-1}}), std::invalid_argument);
  EXPECT_THROW(Network(simulation, {.node_of_rank = {0, 1}}), std::invalid_argument);
}

}  // namespace
}  // namespace ddproof::sim
