// The transport of simulated ranks when something ends: timeouts, crashes, lost messages, aborts.
#include <gtest/gtest.h>

#include "tests/unit/sim_transport_world.h"

namespace ddproof {
namespace {

TEST(SimTransport, DataInFlightArrivesBeforeTheEndOfTheConnection) {
  World world({.ranks = 2, .jitter = 50'000});
  const sim::Report report = world.run([](const ContextPtr& context) {
    if (context->rank == 0) {
      send_one(context, 1, 7, 42);  // and leaves
    } else {
      EXPECT_EQ(receive_one(context, 0, 7), 42);
      receive_one(context, 0, 7);
    }
  });
  EXPECT_EQ(what_of(report.ranks[1]), "Connection closed by peer [rank 0]");
}

TEST(SimTransport, TimeoutsAreVirtual) {
  World world({.ranks = 2, .timeout = milliseconds(30'000), .timeouts_end_deadlocks = true});
  const sim::Report report = world.run([&](const ContextPtr& context) {
    if (context->rank == 1) world.simulation.hang(1);
    receive_one(context, 1, 7);
  });
  EXPECT_EQ(what_of(report.ranks[0]), "Timed out waiting 30000ms for recv operation to complete");
  EXPECT_EQ(report.virtual_time, 30'000'000'000);
}

TEST(SimTransport, ATimeoutBreaksTheConnectionsOfItsContext) {
  World world({.ranks = 3, .timeout = milliseconds(1), .timeouts_end_deadlocks = true});
  const sim::Report report = world.run([&](const ContextPtr& context) {
    if (context->rank == 1) world.simulation.hang(1);
    int value = 0;
    const auto any = context->createUnboundBuffer(&value, sizeof value);
    if (context->rank == 0) {
      any->recv(std::vector<int>{2}, 8);
      EXPECT_THROW(receive_one(context, 1, 7), gloo::IoException);
      EXPECT_THROW(any->waitRecv(), gloo::IoException);
      world.simulation.sleep(1'000'000);
    } else {
      world.simulation.sleep(500'000);
      receive_one(context, 0, 7);
    }
  });
  EXPECT_EQ(report.ranks[0].outcome, sim::RankOutcome::kReturned);
  EXPECT_EQ(what_of(report.ranks[2]), "Connection closed by peer [rank 0]");
}

TEST(SimTransport, AWaitThatIsAbortedSaysSoThoughTheMessageCame) {
  World world({.ranks = 2});
  expect_all_returned(world.run([&](const ContextPtr& context) {
    if (context->rank == 1) return send_one(context, 0, 7, 42);
    int value = 0;
    const auto buffer = context->createUnboundBuffer(&value, sizeof value);
    buffer->recv(1, 7);
    world.simulation.sleep(1'000'000);
    buffer->abortWaitRecv();
    EXPECT_FALSE(buffer->waitRecv());
    EXPECT_TRUE(buffer->waitRecv());
    EXPECT_EQ(value, 42);
  }));
}

TEST(SimTransport, ALateRankMeetsTheTimeoutToTheNanosecond) {
  for (const int seconds : {1'799, 1'801}) {
    World world({.ranks = 2, .timeout = milliseconds(1'800'000)});
    const sim::Report report = world.run([&](const ContextPtr& context) {
      if (context->rank == 0) {
        receive_one(context, 1, 7);
      } else {
        world.simulation.sleep(seconds * 1'000'000'000ll);
        send_one(context, 0, 7, 1);
      }
    });
    EXPECT_EQ(report.ranks[0].outcome == sim::RankOutcome::kReturned, seconds == 1'799) << seconds;
  }
}

TEST(SimTransport, ACrashEndsEveryonesCollective) {
  for (const int ranks : {16, 256}) {
    World world({.ranks = ranks});
    const sim::Report report = world.run([&](const ContextPtr& context) {
      barrier(context);
      if (context->rank == 3) world.simulation.crash(3);
      barrier(context);
      std::vector<float> values(100);
      all_reduce(context, values, gloo::AllreduceOptions::Algorithm::RING);
    });
    EXPECT_EQ(report.verdict, sim::Verdict::kNone);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == 3) continue;
      EXPECT_TRUE(what_of(report.ranks[rank]).starts_with("Connection closed by peer")) << rank;
    }
    EXPECT_LT(report.virtual_time, 1'000'000);
  }
}

TEST(SimTransport, WhatACrashedRankHadInFlightArrivesBeforeTheEnd) {
  World world({.ranks = 2});
  const sim::Report report = world.run([&](const ContextPtr& context) {
    if (context->rank == 0) {
      world.simulation.spawn(0, "killer", [&] {
        world.simulation.sleep(1'000);  // half of the way
        world.simulation.crash(0);
      });
      send_one(context, 1, 7, 42);
    } else {
      std::array<int, 2> values{};
      const auto buffer = context->createUnboundBuffer(values.data(), sizeof values);
      buffer->recv(0, 7, 0, sizeof(int));
      buffer->recv(0, 7, sizeof(int), sizeof(int));
      buffer->waitRecv();
      EXPECT_EQ(values[0], 42);
      EXPECT_THROW(buffer->waitRecv(), gloo::IoException);
    }
  });
  EXPECT_EQ(report.ranks[0].outcome, sim::RankOutcome::kCrashed);
  EXPECT_EQ(report.ranks[1].outcome, sim::RankOutcome::kReturned) << what_of(report.ranks[1]);
}

TEST(SimTransport, ACrashInTheMiddleOfATransferEndsBothSides) {
  World world({.ranks = 2});
  const sim::Report report = world.run([&](const ContextPtr& context) {
    if (context->rank == 0) {
      send_one(context, 1, 7, 1);
      send_one(context, 1, 7, 2);
    } else {
      receive_one(context, 0, 7);
      world.simulation.sleep(100);
      world.simulation.spawn(1, "killer", [&] {
        world.simulation.sleep(1'000);  // half of the way
        world.simulation.crash(1);
      });
      receive_one(context, 0, 7);
    }
  });
  EXPECT_EQ(report.ranks[0].outcome, sim::RankOutcome::kReturned);
  EXPECT_EQ(report.ranks[1].outcome, sim::RankOutcome::kCrashed);
}

struct DropAll : sim::FaultHook {
  sim::MessageFate on_message(int, int, std::uint64_t, std::uint64_t) override {
    return {.drop = true};
  }
};

TEST(SimTransport, ADroppedMessageIsADeadlockThatNamesBothSides) {
  DropAll hook;
  World world({.ranks = 2, .faults = &hook});
  const sim::Report report = world.run([](const ContextPtr& context) {
    if (context->rank == 0) send_one(context, 1, 7, 1);
    if (context->rank == 1) receive_one(context, 0, 7);
  });
  EXPECT_EQ(report.verdict_text,
            "deadlock at t=0 ns: rank 0 waits in send for rank 1; rank 1 waits in recv for rank 0; "
            "faults lost messages: 1");
}

TEST(SimTransport, ADroppedMessageNeverReachesTheReceiversMemory) {
  for (const bool sender_closes : {false, true}) {  // else its buffer goes away
    DropAll hook;
    World world({.ranks = 2, .faults = &hook});
    int received = -1;
    world.run([&](const ContextPtr& context) {
      int* value = &received;
      int sent = 42;
      if (context->rank == 0) value = &sent;
      const auto buffer = context->createUnboundBuffer(value, sizeof *value);
      if (context->rank == 1) {
        buffer->recv(0, 7);
        EXPECT_THROW(buffer->waitRecv(), std::exception);
        return;
      }
      buffer->send(1, 7);
      world.simulation.sleep(1'000'000);
      if (sender_closes) world.fabric.group(0, "world", {0, 1}).endpoints[0].close();
    });
    EXPECT_EQ(received, -1) << sender_closes;
  }
}

TEST(SimTransport, AWaitCanBeAborted) {
  World world({.ranks = 2});
  bool completed = true;
  const sim::Report report = world.run([&](const ContextPtr& context) {
    if (context->rank == 1) return;
    int value = 0;
    const auto buffer = context->createUnboundBuffer(&value, sizeof value);
    const auto task = world.simulation.spawn(0, "aborter", [&] { buffer->abortWaitRecv(); });
    completed = buffer->waitRecv();
    world.simulation.join(*task);
  });
  EXPECT_EQ(report.verdict, sim::Verdict::kNone);
  EXPECT_FALSE(completed);
}

TEST(SimTransport, AFailureBlamesNobodyWhenNobodyLeft) {
  World world({.ranks = 2});
  SimConnection connection(world.fabric.group(0, "world", {0, 1}).endpoints[0]);
  const Finding finding = connection.explain({.detail = "Connection broke"});
  EXPECT_EQ(finding.kind, CommErrorKind::kPeerLost);
  EXPECT_EQ(finding.culprits, std::vector<int>{});
  EXPECT_EQ(finding.what, "Connection broke; nobody left the group");
}

TEST(SimTransport, SeparateGroupsOfTheSameRanksDoNotMix) {
  World world({.ranks = 2});
  Group& other = world.fabric.group(1, "other", {1, 0});
  expect_all_returned(world.run([&](const ContextPtr& context) {
    const ContextPtr second = make_gloo_context(other.endpoints[1 - context->rank]);
    if (context->rank == 0) {
      int values[2] = {1, 2};
      const auto a = context->createUnboundBuffer(&values[0], 4);
      const auto b = second->createUnboundBuffer(&values[1], 4);
      a->send(1, 7);
      b->send(0, 7);
      a->waitSend();
      b->waitSend();
    } else {
      EXPECT_EQ(receive_one(second, 1, 7), 2);
      EXPECT_EQ(receive_one(context, 0, 7), 1);
    }
  }));
}

}  // namespace
}  // namespace ddproof
