// What collectives promise, on every backend with more than one rank, and planted bugs that the
// properties must find and shrink.
#include <gtest/gtest.h>

#include <cstring>

#include "backends/registry/registry.h"
#include "properties/all_reduce_properties.h"
#include "properties/barrier_properties.h"
#include "properties/collective_properties.h"
#include "tests/property/mutant_group.h"
#include "tests/property/property_test.h"
#include "tests/property/world_backends.h"

namespace ddproof {
namespace {

constexpr int kRanks = 5;

class Collectives : public testing::TestWithParam<std::string> {
 protected:
  // Worlds of threads over TCP cost milliseconds each, simulated ones microseconds.
  int cases(int simulated) const { return GetParam() == "sim" ? simulated : simulated / 10; }

  OsRuntime runtime_;
  std::unique_ptr<Backend> backend_ = make_backend(GetParam());
  PropertyWorld world_{*backend_, kRanks};
};

TEST_P(Collectives, AllReduceEqualsTheSerialReduction) {
  const auto result = all_reduce_exact(world_, property_options(runtime_, cases(300)), runtime_);
  expect_holds(result);
  EXPECT_GT(result.classes.at("uneven chunks"), result.cases / 4);
}

TEST_P(Collectives, TheOthersGiveWhatTheyPromise) {
  const auto result = collectives_exact(world_, property_options(runtime_, cases(800)), runtime_);
  expect_holds(result);
  for (const char* op : {"broadcast", "reduce", "all_gather", "reduce_scatter", "gather", "scatter",
                         "all_to_all", "send"}) {
    EXPECT_GT(result.classes.at(op), 0) << op;
  }
  EXPECT_GT(result.classes.at("root is not rank 0"), result.cases / 10);
}

TEST_P(Collectives, BarriersOrder) {
  const auto result = barrier_orders(world_, property_options(runtime_, cases(200)), runtime_);
  expect_holds(result);
  EXPECT_GT(result.classes.at("ranks apart"), result.cases / 4);
  EXPECT_GT(result.classes.at("several rounds"), result.cases / 5);
}

INSTANTIATE_TEST_SUITE_P(Backends, Collectives, testing::ValuesIn(world_backends()),
                         [](const auto& info) { return info.param; });

class CollectiveMutants : public testing::Test {
 protected:
  PropertyWorld with(Mutation mutation) { return {*backend_, kRanks, mutate(std::move(mutation))}; }
  PropertyOptions options() { return property_options(runtime_, 200); }

  OsRuntime runtime_;
  std::unique_ptr<Backend> backend_ = make_backend(world_backends().front());
};

TEST_F(CollectiveMutants, ABarrierThatDoesNothingIsFound) {
  const auto world = with([](ProcessGroup& inner, Call call) -> WorkPtr {
    if (call.op == Op::kBarrier) return std::make_shared<DoneWork>();
    return inner.submit(std::move(call));
  });
  expect_found(barrier_orders(world, options(), runtime_),
               "left round 0 when only 1 of 2 had entered");
}

TEST_F(CollectiveMutants, ABarrierThatWaitsForRankZeroAloneIsFound) {
  const auto world = with([](ProcessGroup& inner, Call call) -> WorkPtr {
    if (call.op == Op::kBarrier) call = Call{.op = Op::kBroadcast, .root = 0, .site = call.site};
    return inner.submit(std::move(call));
  });
  expect_found(barrier_orders(world, options(), runtime_),
               "rounds=1 monitored=false delays=[] seed=0");
}

TEST_F(CollectiveMutants, AnAllReduceThatLeavesTheLastElementOutIsFound) {
  const auto world = with([](ProcessGroup& inner, Call call) -> WorkPtr {
    if (call.input.count() > 0) call = shortened(std::move(call), call.input.count() - 1);
    return inner.submit(std::move(call));
  });
  expect_found(all_reduce_exact(world, options(), runtime_), "world_size=2 type=");
}

TEST_F(CollectiveMutants, AnAllReduceThatTakesTheMinimumForTheMaximumIsFound) {
  const auto world = with([](ProcessGroup& inner, Call call) -> WorkPtr {
    if (call.reduce_op == ReduceOp::kMax) call.reduce_op = ReduceOp::kMin;
    return inner.submit(std::move(call));
  });
  expect_found(all_reduce_exact(world, options(), runtime_), "op=max count=1");
}

TEST_F(CollectiveMutants, AReduceThatGivesEveryRankTheResultIsFound) {
  const auto world = with([](ProcessGroup& inner, Call call) -> WorkPtr {
    if (call.op == Op::kReduce) call.op = Op::kAllReduce;
    return inner.submit(std::move(call));
  });
  expect_found(collectives_exact(world, options(), runtime_), "op=reduce world_size=2");
}

TEST_F(CollectiveMutants, ABroadcastFromRankZeroAlwaysIsFound) {
  const auto world = with([](ProcessGroup& inner, Call call) -> WorkPtr {
    if (call.op == Op::kBroadcast) {
      call.root = 0;
      call.input = call.output;
    }
    return inner.submit(std::move(call));
  });
  expect_found(collectives_exact(world, options(), runtime_), "op=broadcast world_size=2");
}

TEST_F(CollectiveMutants, AnAllToAllThatLeavesPartsWhereTheyAreIsFound) {
  const auto world = with([](ProcessGroup& inner, Call call) -> WorkPtr {
    if (call.op != Op::kAllToAll) return inner.submit(std::move(call));
    if (call.output.bytes() > 0) {
      std::memcpy(call.output.data(), call.input.data(), call.output.bytes());
    }
    return std::make_shared<DoneWork>();
  });
  expect_found(collectives_exact(world, options(), runtime_), "op=all_to_all world_size=2");
}

TEST_F(CollectiveMutants, AnAllGatherThatWritesIntoItsInputIsFound) {
  const auto world = with([](ProcessGroup& inner, Call call) -> WorkPtr {
    void* const input = const_cast<void*>(call.input.data());
    const std::size_t bytes = call.op == Op::kAllGather ? call.input.bytes() : 0;
    WorkPtr work = inner.submit(std::move(call));
    work->wait();
    if (bytes > 0) *static_cast<std::uint8_t*>(input) ^= 1;
    return work;
  });
  expect_found(collectives_exact(world, options(), runtime_), "its input: element 0 of");
}

}  // namespace
}  // namespace ddproof
