// Gloo's own algorithms over the simulated transport, without our process group: results, order,
// ends of connections, timeouts.
#include <gtest/gtest.h>

#include "tests/unit/sim_transport_world.h"

namespace ddproof {
namespace {

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

// Who sent what a receive from any of `sources` got.
int receive_from_any(const ContextPtr& context, const std::vector<int>& sources, int* value) {
  const auto buffer = context->createUnboundBuffer(value, sizeof *value);
  buffer->recv(sources, 7);
  int source = -1;
  buffer->waitRecv(&source);
  return source;
}

TEST(SimTransport, AReceiveFromAnyTakesTheOldestSend) {
  World world({.ranks = 3});
  expect_all_returned(world.run([&](const ContextPtr& context) {
    if (context->rank != 0) {
      world.simulation.sleep(context->rank == 1 ? 2'000 : 1'000);
      return send_one(context, 0, 7, 10 * context->rank);
    }
    world.simulation.sleep(3'000);
    int value = 0;
    EXPECT_EQ(receive_from_any(context, {1, 2}, &value), 2);
    EXPECT_EQ(value, 20);
    EXPECT_EQ(receive_from_any(context, {1, 2}, &value), 1);
    EXPECT_EQ(value, 10);
  }));
}

TEST(SimTransport, ASendPrefersAReceiveFromItsRank) {
  World world({.ranks = 3});
  expect_all_returned(world.run([&](const ContextPtr& context) {
    if (context->rank != 0) {
      world.simulation.sleep(context->rank == 1 ? 1'000 : 2'000);
      return send_one(context, 0, 7, 10 * context->rank);
    }
    std::array<int, 2> values{};
    const auto any = context->createUnboundBuffer(&values[0], sizeof(int));
    const auto one = context->createUnboundBuffer(&values[1], sizeof(int));
    any->recv(std::vector<int>{1, 2}, 7);
    one->recv(1, 7);
    any->waitRecv();
    one->waitRecv();
    EXPECT_EQ(values, (std::array<int, 2>{20, 10}));
  }));
}

TEST(SimTransport, AReceiveFromAnyThatGoesAwayTakesNothing) {
  World world({.ranks = 2});
  expect_all_returned(world.run([&](const ContextPtr& context) {
    if (context->rank == 1) {
      world.simulation.sleep(1'000);
      return send_one(context, 0, 7, 42);
    }
    int first = 0, second = 0;
    context->createUnboundBuffer(&first, sizeof first)->recv(std::vector<int>{1}, 7);
    EXPECT_EQ(receive_from_any(context, {1}, &second), 1);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(second, 42);
  }));
}

TEST(SimTransport, AReceiveFromAnyThatNobodyEndsNamesAllThatCould) {
  World world({.ranks = 3});
  const sim::Report report = world.run([](const ContextPtr& context) {
    int value = 0;
    if (context->rank == 0) receive_from_any(context, {1, 2}, &value);
  });
  EXPECT_EQ(
      report.verdict_text,
      "deadlock at t=0 ns: rank 0 waits in recv for any of ranks 1, 2; rank 1 has returned; rank 2 "
      "has returned");
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

}  // namespace
}  // namespace ddproof
