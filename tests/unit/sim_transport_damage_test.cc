// The transport of simulated ranks when messages are damaged on their way.
#include <gtest/gtest.h>

#include "simulator/plan_faults.h"
#include "tests/unit/sim_transport_world.h"

namespace ddproof {
namespace {

// Runs `body` on two ranks under the plan.
sim::Report run_under(const std::string& plan,
                      const std::function<void(sim::Simulation&, const ContextPtr&)>& body) {
  sim::PlanFaults faults(sim::parse_fault_plan(plan));
  World world({.ranks = 2, .faults = &faults});
  faults.watch(world.simulation);
  return world.run([&](const ContextPtr& context) { body(world.simulation, context); });
}

TEST(SimTransportDamage, ATruncatedMessageFailsBothSidesAsAMismatch) {
  int received = -1;
  const sim::Report report = run_under(
      "truncate from=0 to=1 message=1 bytes=3", [&](sim::Simulation&, const ContextPtr& context) {
        int sent = 42;
        const auto buffer =
            context->createUnboundBuffer(context->rank == 0 ? &sent : &received, sizeof sent);
        if (context->rank == 0) {
          buffer->send(1, 7);
          buffer->waitSend();
        } else {
          buffer->recv(0, 7);
          buffer->waitRecv();
        }
      });
  for (const sim::RankReport& rank : report.ranks) {
    EXPECT_NE(what_of(rank).find("rank 0 sends 3 bytes where rank 1 expects 4"), std::string::npos)
        << what_of(rank);
  }
  EXPECT_EQ(received, -1);
  EXPECT_EQ(report.ranks[1].bytes_received, 3u);
}

TEST(SimTransportDamage, AFlippedBitGetsIntoTheReceiversMemory) {
  expect_all_returned(run_under("flip from=0 to=1 message=2 bit=37",
                                [&](sim::Simulation&, const ContextPtr& context) {
                                  for (const int expected : {8, 8 ^ 1 << 5, 8}) {
                                    if (context->rank == 0) send_one(context, 1, 7, 8);
                                    if (context->rank == 1) {
                                      EXPECT_EQ(receive_one(context, 0, 7), expected);
                                    }
                                  }
                                }));
}

TEST(SimTransportDamage, AFlippedBitArrivesAlsoWhenTheSendersBufferIsGone) {
  run_under("flip from=0 to=1 message=1 bit=0",
            [&](sim::Simulation& simulation, const ContextPtr& context) {
              if (context->rank == 1) {
                EXPECT_EQ(receive_one(context, 0, 7), 43);
                return;
              }
              int value = 42;
              context->createUnboundBuffer(&value, sizeof value)->send(1, 7);
              simulation.sleep(100);  // until the receive is there: then the buffer goes
            });
}

TEST(SimTransportDamage, ATruncatedMessageWritesNothingWhenTheSendersBufferIsGone) {
  run_under("truncate from=0 to=1 message=1 bytes=0",
            [&](sim::Simulation& simulation, const ContextPtr& context) {
              int value = context->rank == 0 ? 42 : -1;
              const auto buffer = context->createUnboundBuffer(&value, sizeof value);
              if (context->rank == 0) {
                buffer->send(1, 7);
                simulation.sleep(100);
                return;
              }
              buffer->recv(0, 7);
              EXPECT_THROW(buffer->waitRecv(), gloo::EnforceNotMet);
              EXPECT_EQ(value, -1);
            });
}

TEST(SimTransportDamage, ASecondCopyIsThrownAway) {
  const sim::Report report = run_under("duplicate from=0 to=1 message=1",
                                       [&](sim::Simulation&, const ContextPtr& context) {
                                         for (int i = 0; i < 3; ++i) {
                                           if (context->rank == 0) send_one(context, 1, 7, i);
                                           if (context->rank == 1) {
                                             EXPECT_EQ(receive_one(context, 0, 7), i);
                                           }
                                         }
                                       });
  expect_all_returned(report);
  EXPECT_EQ(report.ranks[1].messages_received, 4u);
}

}  // namespace
}  // namespace ddproof
