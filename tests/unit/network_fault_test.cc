// What each fault of a plan does to messages on the network, to the nanosecond.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/network.h"
#include "simulator/plan_faults.h"

namespace ddproof::sim {
namespace {

constexpr Time kFaultyLatency = 1'000;

// Three ranks one microsecond apart; a byte takes a nanosecond.
class FaultyNetwork {
 public:
  explicit FaultyNetwork(const std::string& plan)
      : faults(parse_fault_plan(plan)),
        simulation({.ranks = 3, .faults = &faults}),
        network(simulation, {.same_node = {kFaultyLatency, 1'000'000'000}}) {
    faults.watch(simulation);
  }

  Passage send(int from, int to, std::uint64_t bytes) {
    messages_.push_back({*this, from, to, bytes});
    return network.send(from, to, bytes, flows_[3 * from + to],
                        action_of<&Message::arrive>(messages_.back()));
  }
  Report run(const std::function<void()>& body) {
    simulation.spawn(0, "main", body);
    return simulation.run();
  }

  PlanFaults faults;
  Simulation simulation;
  Network network;
  std::vector<std::string> log;  // "0>1 8 @1008"

 private:
  struct Message {
    void arrive(std::uint64_t) {
      world.network.arrived(from, to, bytes);
      world.log.push_back(std::to_string(from) + ">" + std::to_string(to) + " " +
                          std::to_string(bytes) + " @" + std::to_string(world.simulation.now()));
    }
    FaultyNetwork& world;
    int from;
    int to;
    std::uint64_t bytes;
  };
  std::deque<Message> messages_;
  std::vector<Flow> flows_{9};
};

using Log = std::vector<std::string>;

TEST(NetworkFault, DelaysAndDropsTheMessageOfThePairThatItNames) {
  FaultyNetwork world("delay from=0 to=1 message=2 time=5us; drop from=0 to=2 message=1");
  const Report report = world.run([&] {
    world.send(0, 2, 0);
    world.send(0, 1, 0);
    world.send(0, 1, 0);
    world.send(0, 2, 0);
  });
  EXPECT_EQ(world.log, (Log{"0>1 0 @1000", "0>2 0 @1000", "0>1 0 @6000"}));
  EXPECT_EQ(report.messages, 4u);
  EXPECT_EQ(to_string(world.faults.fired()),
            "drop from=0 to=2 message=1; delay from=0 to=1 message=2 time=5us");
}

TEST(NetworkFault, SlowDelaysWhatTheRankSends) {
  FaultyNetwork world("slow rank=0 factor=1 delay=2us");
  world.run([&] {
    world.send(0, 1, 0);
    world.send(1, 0, 0);
  });
  EXPECT_EQ(world.log, (Log{"1>0 0 @1000", "0>1 0 @3000"}));
}

TEST(NetworkFault, ACopyTakesTimeAndIsCountedButArrivesOnce) {
  FaultyNetwork world("duplicate from=0 to=1 message=1");
  const Report report = world.run([&] {
    world.send(0, 1, 100);
    world.send(0, 1, 10);
  });
  EXPECT_EQ(world.log, (Log{"0>1 100 @1100", "0>1 10 @1210"}));
  EXPECT_EQ(report.ranks[1].messages_received, 3u);
  EXPECT_EQ(report.ranks[1].bytes_received, 210u);
  EXPECT_EQ(report.messages, 2u);
}

TEST(NetworkFault, AReorderedMessageIsOvertakenBySomebodyElsesNext) {
  FaultyNetwork world("reorder from=0 to=1 message=1 time=1ms");
  world.run([&] {
    world.send(0, 1, 7);
    world.send(0, 2, 1);
    world.simulation.sleep(50'000);
    world.send(2, 1, 9);
  });
  EXPECT_EQ(world.log, (Log{"0>2 1 @1008", "2>1 9 @51009", "0>1 7 @51009"}));
}

TEST(NetworkFault, AReorderedMessageGoesOnAloneWhenNobodyOvertakesIt) {
  FaultyNetwork world("reorder from=0 to=1 message=1 time=1ms");
  world.run([&] {
    world.send(0, 1, 7);
    world.send(0, 1, 8);  // of the same channel: waits behind it
    world.simulation.sleep(2'000'000);
    world.send(2, 1, 9);
  });
  EXPECT_EQ(world.log, (Log{"0>1 7 @1001007", "0>1 8 @1001007", "2>1 9 @2001009"}));
}

TEST(NetworkFault, SaysWhatArrivesOfADamagedMessage) {
  FaultyNetwork world(
      "truncate from=0 to=1 message=1 bytes=3; flip from=0 to=1 message=2 bit=77; "
      "truncate from=0 to=1 message=3 bytes=3; flip from=0 to=1 message=4 bit=1");
  world.run([&] {
    const Passage cut = world.send(0, 1, 10);
    EXPECT_EQ(cut.bytes, 3u);
    EXPECT_EQ(cut.flipped_bit, std::nullopt);
    const Passage flipped = world.send(0, 1, 8);
    EXPECT_EQ(flipped.bytes, 8u);
    EXPECT_EQ(flipped.flipped_bit, 77u - 64u);
    EXPECT_EQ(world.send(0, 1, 3).bytes, 3u);  // short enough already
    EXPECT_EQ(world.send(0, 1, 0).flipped_bit, std::nullopt);
  });
  EXPECT_EQ(world.faults.fired().size(), 2u);
}

TEST(NetworkFault, WhatIsSentIntoAPartitionTravelsAfterItsEnd) {
  FaultyNetwork world("partition ranks=0,2 start=10us end=30us");
  world.run([&] {
    world.send(0, 1, 0);
    world.simulation.sleep(15'000);
    world.send(0, 1, 0);
    world.send(1, 2, 0);
    world.send(2, 0, 0);  // on the same side
    world.simulation.sleep(25'000);
    world.send(1, 2, 0);
  });
  EXPECT_EQ(world.log,
            (Log{"0>1 0 @1000", "2>0 0 @16000", "0>1 0 @31000", "1>2 0 @31000", "1>2 0 @41000"}));
}

TEST(NetworkFault, APartitionWithoutEndSwallowsMessages) {
  FaultyNetwork world("partition ranks=1 start=0ns end=never");
  world.run([&] {
    EXPECT_EQ(world.send(0, 1, 0).arrival, kNever);
    EXPECT_EQ(world.send(1, 2, 0).arrival, kNever);
    world.send(0, 2, 0);
  });
  EXPECT_EQ(world.log, Log{"0>2 0 @1000"});
}

TEST(NetworkFault, ADelayForEverIsALoss) {
  FaultyNetwork world(
      "slow rank=0 factor=1 delay=9000000000s; delay from=0 to=1 message=1 time=9000000000s");
  world.run([&] { EXPECT_EQ(world.send(0, 1, 0).arrival, kNever); });
  EXPECT_EQ(world.log, Log{});
}

}  // namespace
}  // namespace ddproof::sim
