// Gloo's own algorithms over the simulated transport, without our process group: results, order,
// ends of connections, timeouts.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/api/digest.h"
#include "backends/api/error.h"
#include "backends/sim/sim_connection.h"
#include "backends/sim/transport.h"

namespace ddproof {
namespace {

using ContextPtr = std::shared_ptr<gloo::Context>;
using std::chrono::milliseconds;

struct Setting {
  int ranks = 2;
  std::uint64_t seed = 0;
  sim::Time jitter = 0;
  milliseconds timeout = kGlooForever;
  bool timeouts_end_deadlocks = false;
  sim::FaultHook* faults = nullptr;
};

// Runs `body(context)` on every rank, each with a connected context of Gloo.
class World {
 public:
  explicit World(const Setting& setting)
      : setting_(setting),
        simulation({.ranks = setting.ranks,
                    .seed = setting.seed,
                    .patience_runs_out = setting.timeouts_end_deadlocks,
                    .scheduler = &scheduler_,
                    .faults = setting.faults}),
        network_(simulation, {.jitter_max = setting.jitter}),
        fabric(simulation, network_) {}

  sim::Report run(const std::function<void(const ContextPtr&)>& body) {
    std::vector<int> everybody;
    for (int rank = 0; rank < setting_.ranks; ++rank) everybody.push_back(rank);
    Group& group = fabric.group(0, "world", everybody);
    for (int rank = 0; rank < setting_.ranks; ++rank) {
      simulation.spawn(rank, "main", [&, rank] {
        const ContextPtr context = make_gloo_context(group.endpoints[rank]);
        context->setTimeout(setting_.timeout);
        body(context);
      });
    }
    return simulation.run();
  }

 private:
  Setting setting_;
  sim::RandomWalk scheduler_;

 public:
  sim::Simulation simulation;

 private:
  sim::Network network_;

 public:
  Fabric fabric;
};

// Rank r's element i; sums of 64 of them are exact.
float input(int rank, std::size_t i) { return static_cast<float>((rank * 7 + i * 3) % 64); }

std::vector<float> inputs(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = input(rank, i);
  return values;
}

std::vector<float> exact_sum(int ranks, std::size_t count) {
  std::vector<float> values(count, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) values[i] += input(rank, i);
  }
  return values;
}

void all_reduce(const ContextPtr& context, std::vector<float>& values,
                gloo::AllreduceOptions::Algorithm algorithm) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm);
  options.setOutput(values.data(), values.size());
  options.setMaxSegmentSize(256);  // several segments already at small sizes
  options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  gloo::allreduce(options);
}

void barrier(const ContextPtr& context) {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

void expect_all_returned(const sim::Report& report) {
  for (const sim::RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.outcome, sim::RankOutcome::kReturned);
    if (rank.error) std::rethrow_exception(rank.error);
  }
}

std::string what_of(const sim::RankReport& report) {
  if (!report.error) return "";
  try {
    std::rethrow_exception(report.error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

struct Shape {
  int ranks;
  std::size_t count;
};

void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.ranks << "x" << shape.count; }

class GlooOverSimulator : public testing::TestWithParam<Shape> {
 protected:
  int ranks() const { return GetParam().ranks; }
  std::size_t count() const { return GetParam().count; }
  sim::Report run(const std::function<void(const ContextPtr&)>& body) {
    World world({.ranks = ranks(), .seed = 3, .jitter = 20'000});
    return world.run(body);
  }
};

TEST_P(GlooOverSimulator, AllReduceIsTheExactSum) {
  for (const auto algorithm :
       {gloo::AllreduceOptions::Algorithm::RING, gloo::AllreduceOptions::Algorithm::BCUBE}) {
    expect_all_returned(run([&](const ContextPtr& context) {
      std::vector<float> values = inputs(context->rank, count());
      if (count() > 0) all_reduce(context, values, algorithm);
      EXPECT_EQ(values, exact_sum(ranks(), count()));
    }));
  }
}

TEST_P(GlooOverSimulator, BroadcastGivesRootsData) {
  expect_all_returned(run([&](const ContextPtr& context) {
    std::vector<float> values = inputs(context->rank, count());
    gloo::BroadcastOptions options(context);
    options.setOutput(values.data(), values.size());
    options.setRoot(ranks() - 1);
    gloo::broadcast(options);
    EXPECT_EQ(values, inputs(ranks() - 1, count()));
  }));
}

TEST_P(GlooOverSimulator, AllGatherKeepsTheOrderOfRanks) {
  expect_all_returned(run([&](const ContextPtr& context) {
    std::vector<float> mine = inputs(context->rank, count());
    std::vector<float> all(count() * static_cast<std::size_t>(ranks()));
    gloo::AllgatherOptions options(context);
    options.setInput(mine.data(), mine.size());
    options.setOutput(all.data(), all.size());
    if (count() > 0) gloo::allgather(options);
    std::vector<float> expected;
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::vector<float> part = inputs(rank, count());
      expected.insert(expected.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, expected);
  }));
}

TEST_P(GlooOverSimulator, ReduceGivesTheExactSumToTheRoot) {
  expect_all_returned(run([&](const ContextPtr& context) {
    std::vector<float> values = inputs(context->rank, count());
    gloo::ReduceOptions options(context);
    options.setOutput(values.data(), values.size());
    options.setRoot(0);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    if (count() > 0) gloo::reduce(options);
    if (context->rank == 0) {
      EXPECT_EQ(values, exact_sum(ranks(), count()));
    }
  }));
}

TEST_P(GlooOverSimulator, AllToAllTransposes) {
  expect_all_returned(run([&](const ContextPtr& context) {
    const std::size_t n = static_cast<std::size_t>(ranks());
    std::vector<float> in = inputs(context->rank, count() * n), out(count() * n);
    gloo::AlltoallOptions options(context);
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    if (count() > 0) gloo::alltoall(options);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t from = i / count(), element = i % count();
      EXPECT_EQ(out[i], input(static_cast<int>(from), context->rank * count() + element));
    }
  }));
}

TEST_P(GlooOverSimulator, GatherAndScatterAreInverse) {
  expect_all_returned(run([&](const ContextPtr& context) {
    std::vector<float> mine = inputs(context->rank, count()), back(count());
    std::vector<float> all(context->rank == 0 ? count() * static_cast<std::size_t>(ranks()) : 0);
    if (count() == 0) return;
    gloo::GatherOptions gather(context);
    gather.setInput(mine.data(), mine.size());
    if (context->rank == 0) gather.setOutput(all.data(), all.size());
    gather.setRoot(0);
    gloo::gather(gather);
    gloo::ScatterOptions scatter(context);
    if (context->rank == 0) {
      std::vector<float*> parts;
      for (int rank = 0; rank < ranks(); ++rank) parts.push_back(all.data() + rank * count());
      scatter.setInputs(parts, count());
    }
    scatter.setOutput(back.data(), back.size());
    scatter.setRoot(0);
    gloo::scatter(scatter);
    EXPECT_EQ(back, mine);
  }));
}

TEST_P(GlooOverSimulator, NobodyLeavesABarrierBeforeTheLastHasEntered) {
  World world({.ranks = ranks(), .seed = count()});
  int entered = 0;
  expect_all_returned(world.run([&](const ContextPtr& context) {
    world.simulation.sleep(static_cast<sim::Time>(world.simulation.random_u64(context->rank) % 99));
    ++entered;
    barrier(context);
    EXPECT_EQ(entered, ranks());
  }));
}

INSTANTIATE_TEST_SUITE_P(Shapes, GlooOverSimulator,
                         testing::Values(Shape{2, 0}, Shape{2, 1}, Shape{2, 1000}, Shape{3, 7},
                                         Shape{5, 0}, Shape{5, 1000}, Shape{8, 1}, Shape{8, 777},
                                         Shape{64, 7}, Shape{64, 1000}),
                         [](const auto& info) {
                           return std::to_string(info.param.ranks) + "Ranks" +
                                  std::to_string(info.param.count) + "Elements";
                         });

std::uint64_t result_of_all_reduce(const Setting& setting, std::uint64_t* digest) {
  std::vector<std::vector<float>> results(static_cast<std::size_t>(setting.ranks));
  World world(setting);
  *digest = world
                .run([&](const ContextPtr& context) {
                  std::vector<float> values(333);
                  for (std::size_t i = 0; i < values.size(); ++i) {
                    values[i] = 1.0f / static_cast<float>(1 + i + context->rank * 1000);
                  }
                  all_reduce(context, values, gloo::AllreduceOptions::Algorithm::RING);
                  results[context->rank] = values;
                })
                .digest;
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  return digest_of(std::as_bytes(std::span(results[0])));
}

TEST(SimTransport, SameSeedGivesTheSameRun) {
  std::uint64_t first = 0, second = 0;
  result_of_all_reduce({.ranks = 6, .seed = 5, .jitter = 10'000}, &first);
  result_of_all_reduce({.ranks = 6, .seed = 5, .jitter = 10'000}, &second);
  EXPECT_EQ(first, second);
}

TEST(SimTransport, SchedulesDoNotChangeTheResult) {
  std::set<std::uint64_t> digests, results;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::uint64_t digest = 0;
    results.insert(result_of_all_reduce({.ranks = 6, .seed = seed, .jitter = 10'000}, &digest));
    digests.insert(digest);
  }
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(digests.size(), 50u);
}

// One message of 4 bytes.
void send_one(const ContextPtr& context, int peer, std::uint64_t slot, int value) {
  const auto buffer = context->createUnboundBuffer(&value, sizeof value);
  buffer->send(peer, slot);
  buffer->waitSend(context->getTimeout());
}

int receive_one(const ContextPtr& context, int peer, std::uint64_t slot) {
  int value = -1;
  const auto buffer = context->createUnboundBuffer(&value, sizeof value);
  buffer->recv(peer, slot);
  buffer->waitRecv(context->getTimeout());
  return value;
}

TEST(SimTransport, KeepsTheOrderOfASlotAndTellsSlotsApart) {
  World world({.ranks = 2, .jitter = 50'000});
  expect_all_returned(world.run([](const ContextPtr& context) {
    if (context->rank == 0) {
      std::array<int, 3> values{10, 11, 20};
      std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;
      for (int& value : values)
        buffers.push_back(context->createUnboundBuffer(&value, sizeof value));
      buffers[0]->send(1, 1);
      buffers[1]->send(1, 1);
      buffers[2]->send(1, 2);
      for (const auto& buffer : buffers) buffer->waitSend();
    } else {
      EXPECT_EQ(receive_one(context, 0, 2), 20);
      EXPECT_EQ(receive_one(context, 0, 1), 10);
      EXPECT_EQ(receive_one(context, 0, 1), 11);
    }
  }));
}

TEST(SimTransport, SendsAreRendezvousSoCrossedSendsDeadlock) {
  World world({.ranks = 2});
  const sim::Report report = world.run([](const ContextPtr& context) {
    send_one(context, 1 - context->rank, 7, 0);
    receive_one(context, 1 - context->rank, 7);
  });
  EXPECT_EQ(report.verdict_text,
            "deadlock at t=0 ns: rank 0 waits in send for rank 1; rank 1 waits in send for rank 0");
  try {
    std::rethrow_exception(report.ranks[0].error);
  } catch (const CommError& error) {
    EXPECT_EQ(error.kind(), CommErrorKind::kDeadlock);
    EXPECT_EQ(error.what(), report.verdict_text);
  }
}

TEST(SimTransport, RefusesSizesThatDiffer) {
  World world({.ranks = 2});
  const sim::Report report = world.run([](const ContextPtr& context) {
    std::array<char, 8> bytes{};
    const auto buffer = context->createUnboundBuffer(bytes.data(), context->rank == 0 ? 4 : 8);
    if (context->rank == 0) {
      buffer->send(1, 7);
      buffer->waitSend();
    } else {
      buffer->recv(0, 7);
      buffer->waitRecv();
    }
  });
  for (const sim::RankReport& rank : report.ranks) {
    EXPECT_NE(what_of(rank).find("rank 0 sends 4 bytes where rank 1 expects 8"), std::string::npos);
  }
}

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
            "deadlock at t=0 ns: rank 0 waits in send for rank 1; rank 1 waits in recv for rank 0");
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
