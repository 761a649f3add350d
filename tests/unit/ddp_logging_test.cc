// What the wrapper says of itself: PyTorch's logger keys, and where a step's time goes.
#include <gtest/gtest.h>

#include <chrono>
#include <map>

#include "tests/unit/scripted_module.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;
using Integers = std::map<std::string, std::int64_t>;
using Strings = std::map<std::string, std::string>;

DdpLoggingData logged(const DdpOptions& options, int steps,
                      const std::function<void(DistributedDataParallel<float>&)>& before = {}) {
  DdpLoggingData data;
  run_ranks(2, [&](RankContext& rank) {
    ScriptedModule module(8, 65536);
    module.skip = [&](std::size_t i) { return options.find_unused_parameters && i == 5; };
    DistributedDataParallel<float> ddp(module, rank.group, options);
    if (before) before(ddp);
    for (int i = 0; i < steps; ++i) step(ddp);
    if (rank.group.rank() == 1) data = ddp.logging_data();
  });
  return data;
}

TEST(LoggingData, OfAPlainRun) {
  const DdpLoggingData data = logged({}, 3);
  EXPECT_EQ(data.integers, (Integers{{"world_size", 2},
                                     {"rank", 1},
                                     {"iteration", 3},
                                     {"bucket_cap_bytes", 26214400},
                                     {"broadcast_buffers", 1},
                                     {"find_unused_parameters", 0},
                                     {"gradient_as_bucket_view", 1},
                                     {"has_rebuilt_buckets", 1},
                                     {"num_parameter_tensors", 8},
                                     {"total_parameter_size_bytes", 2097152}}));
  EXPECT_EQ(data.strings,
            (Strings{{"backend_name", "sim"},
                     {"dtypes", "float32"},
                     {"bucket_sizes", "2097152"},
                     {"rebuilt_bucket_sizes", "1048576, 1048576"},
                     {"rebuilt_per_bucket_param_indices", "[7, 6, 5, 4], [3, 2, 1, 0]"},
                     {"prev_iteration_grad_ready_order_indices", "7, 6, 5, 4, 3, 2, 1, 0"}}));
}

TEST(LoggingData, OfUnusedParametersAStaticGraphAndJoin) {
  const DdpLoggingData unused = logged({.find_unused_parameters = true}, 2);
  EXPECT_EQ(unused.integers.at("unused_parameter_size"), 1);
  EXPECT_EQ(unused.integers.at("can_set_static_graph"), 1);
  EXPECT_FALSE(unused.strings.contains("rebuilt_bucket_sizes"));
  EXPECT_EQ(logged({.static_graph = true}, 2).integers.at("static_graph"), 1);
  const auto joined = logged({}, 1, [](auto& ddp) { ddp.join({}, [&] { step(ddp); }); });
  EXPECT_EQ(joined.integers.at("join_uneven_inputs"), 1);
}

TEST(LoggingData, AChangingGraphCannotBeStatic) {
  run_ranks(1, [](RankContext& rank) {
    ScriptedModule module(2, 1);
    DistributedDataParallel<float> ddp(module, rank.group, {.find_unused_parameters = true});
    step(ddp);
    module.skip = [](std::size_t i) { return i == 0; };
    step(ddp);
    EXPECT_EQ(ddp.logging_data().integers.at("can_set_static_graph"), 0);
  });
}

// Eight buckets of 1 MiB; backward takes 10 ms for each, more than its all-reduce takes.
TEST(LoggingData, OnlyTheLastBucketsReductionIsExposedWhenComputeDominates) {
  constexpr std::int64_t kCount = 262144;
  run_ranks(4, [](RankContext& rank) {
    ScriptedModule module(8, kCount);
    module.on_forward = [&] { rank.runtime.charge(milliseconds(40)); };
    module.on_gradient = [&] { rank.runtime.charge(milliseconds(10)); };
    DistributedDataParallel<float> ddp(module, rank.group,
                                       {.bucket_cap_bytes = 1 << 20, .runtime = &rank.runtime});
    // All ranks go on at the same moment of their common clock.
    const auto meet_at = [&](Duration time) { rank.runtime.sleep_for(time - rank.runtime.now()); };
    step(ddp);
    step(ddp);
    ASSERT_EQ(ddp.reducer().bucket_parameters().size(), 8U);
    meet_at(milliseconds(1000));
    step(ddp);
    const auto times = ddp.logging_data().integers;
    EXPECT_EQ(times.at("forward_compute_time"), Duration(milliseconds(40)).count());
    EXPECT_EQ(times.at("backward_compute_time"), Duration(milliseconds(80)).count());
    EXPECT_EQ(times.at("backward_compute_comm_overlap_time"), Duration(milliseconds(70)).count());

    std::vector<float> alone(kCount + 1);
    meet_at(milliseconds(2000));
    const TimePoint begin = rank.runtime.now();
    rank.group.all_reduce(Buffer::of(alone), ReduceOp::kSum, {.label = "bucket 7"})->wait();
    const Duration exposed = rank.runtime.now() - begin;
    EXPECT_LT(exposed, milliseconds(10));
    EXPECT_EQ(times.at("backward_comm_time"), (Duration(milliseconds(70)) + exposed).count());
  });
}

}  // namespace
}  // namespace ddproof
