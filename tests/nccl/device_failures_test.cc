// Failures while several calls on device memory are in flight: every live rank is told the same,
// soon, in virtual time; the callers' streams go on; and nothing is misused meanwhile.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <string>
#include <vector>

#include "tests/nccl/failed_ranks.h"
#include "tests/nccl/on_device.h"

namespace ddproof {
namespace {

using standin::Script;

constexpr int kInFlight = 3;

struct Buffers {
  explicit Buffers(int size)
      : one(stream, std::vector<float>(8, 1)),
        many(stream, std::vector<float>(8 * static_cast<std::size_t>(size), 1)),
        more(stream, std::vector<float>(8 * static_cast<std::size_t>(size), 1)) {}
  TestStream stream;
  OnDevice<float> one, many, more;
};

struct Collective {
  const char* name;  // of NCCL's function
  std::function<WorkPtr(ProcessGroup&, const Buffers&)> call;
};

const std::vector<Collective>& collectives() {
  static const std::vector<Collective> all = {
      {"ncclAllReduce", [](auto& g, auto& b) { return g.all_reduce(b.one.buffer()); }},
      {"ncclAllReduce",
       [](auto& g, auto& b) { return g.all_reduce(b.one.buffer(), ReduceOp::kAverage); }},
      {"ncclBroadcast", [](auto& g, auto& b) { return g.broadcast(b.one.buffer(), 0); }},
      {"ncclReduce", [](auto& g, auto& b) { return g.reduce(b.one.buffer(), 0); }},
      {"ncclAllGather",
       [](auto& g, auto& b) { return g.all_gather(b.one.buffer(), b.many.buffer()); }},
      {"ncclReduceScatter",
       [](auto& g, auto& b) { return g.reduce_scatter(b.many.buffer(), b.one.buffer()); }},
      {"ncclSend", [](auto& g, auto& b) { return g.gather(b.one.buffer(), b.many.buffer(), 0); }},
      {"ncclRecv", [](auto& g, auto& b) { return g.scatter(b.many.buffer(), b.one.buffer(), 0); }},
      {"ncclSend",
       [](auto& g, auto& b) { return g.all_to_all(b.many.buffer(), b.more.buffer()); }}};
  return all;
}

CommErrorKind kind_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommError& e) {
    return e.kind();
  }
}

// Makes the calls and then waits for them and for the stream; `between` runs before the waits. The
// rank's error is what the next call says; the calls that failed must have said the same.
void call_and_wait(
    const Collective& collective, RankContext& rank, const std::function<void()>& between = [] {}) {
  const Buffers buffers(rank.group.size());
  std::vector<WorkPtr> works;
  for (int i = 0; i < kInFlight; ++i) works.push_back(collective.call(rank.group, buffers));
  between();
  for (const WorkPtr& work : works) {
    try {
      work->wait();
    } catch (const CommError&) {
      EXPECT_NE(work->error(), nullptr);
      EXPECT_TRUE(work->is_completed());
    }
  }
  (void)buffers.stream.synchronize();  // comes back whatever has become of the calls
  try {
    rank.group.barrier()->wait();
  } catch (const CommError& error) {
    for (const WorkPtr& work : works) {
      if (work->error()) {
        EXPECT_EQ(kind_of(work->error()), error.kind());
      }
    }
    throw;
  }
}

StandinReport run_all(const Collective& collective, std::vector<Script> scripts,
                      std::uint64_t seed = 1) {
  return run_standin_world(world_of(kRanks, std::move(scripts), seed),
                           [&](RankContext& rank) { call_and_wait(collective, rank); });
}

TEST(NcclDeviceFailures, ACallThatFailsOnOneRankEndsAllThatAreInFlight) {
  for (const Collective& each : collectives()) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::string(each.name) + " " + std::to_string(seed));
      const Script script{2, each.name, 2, Script::Effect::kReturn, ncclSystemError};
      expect_all(run_all(each, {script}, seed), CommErrorKind::kPeerLost, {2}, "rank 2 is lost (");
    }
  }
}

TEST(NcclDeviceFailures, AnAsynchronousErrorEndsAllThatAreInFlight) {
  for (const Collective& each : collectives()) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::string(each.name) + " " + std::to_string(seed));
      const Script script{2, each.name, 2, Script::Effect::kAsync, ncclInternalError};
      expect_all(run_all(each, {script}, seed), CommErrorKind::kPeerLost, {2},
                 "internal error (scripted)");
    }
  }
}

TEST(NcclDeviceFailures, ADeviceThatIsLostEndsAllThatAreInFlight) {
  // The last of them: once per call before NCCL's part, once in each wait().
  for (const char* call : {"ncclAllReduce", "cudaEventQuery", "cudaStreamWaitEvent"}) {
    for (int number = 1; number <= 2 * kInFlight; ++number) {
      if (std::string(call) == "ncclAllReduce" && number > kInFlight) break;
      SCOPED_TRACE(std::string(call) + " " + std::to_string(number));
      const Script script{1, call, number, Script::Effect::kLoseDevice, 0};
      expect_all(run_all(collectives()[0], {script}, static_cast<std::uint64_t>(number)),
                 CommErrorKind::kPeerLost, {1}, "rank 1 is lost (");
    }
  }
}

TEST(NcclDeviceFailures, AnOperationThatHangsMeetsTheTimeout) {
  for (const Collective& each : collectives()) {
    SCOPED_TRACE(each.name);
    const StandinReport report = run_all(each, {{2, each.name, 2, Script::Effect::kHang, 0}});
    for (const auto& error : errors_of(report.run)) {
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->kind, CommErrorKind::kTimeout) << error->text;
    }
    EXPECT_EQ(report.complaints, Lines{});
    EXPECT_LE(Duration(report.run.virtual_time), 2 * kBound);
  }
}

// NCCL's own abort has no bound. What the calls are told does not depend on it; the group's end
// does.
TEST(NcclDeviceFailures, AnAbortThatHangsHoldsUpNoError) {
  TimePoint told{0};
  const std::vector<Script> scripts = {
      {2, "ncclAllReduce", 2, Script::Effect::kReturn, ncclSystemError},
      {2, "ncclCommAbort", 1, Script::Effect::kHang, 0}};
  run_standin_world(world_of(kRanks, scripts), [&](RankContext& rank) {
    const Buffers buffers(rank.group.size());
    const auto& all_reduce = collectives()[0].call;
    const WorkPtr first = all_reduce(rank.group, buffers);
    const WorkPtr second = all_reduce(rank.group, buffers);
    if (rank.group.rank() != 2) return;
    EXPECT_THROW(second->wait(), CommError);
    EXPECT_THROW(rank.group.barrier()->wait(), CommError);
    told = rank.runtime.now();
  });
  EXPECT_GT(told, TimePoint(0));
  EXPECT_LE(told, kBound);
}

// One rank never comes, and lives: the watchdog meets the deadline of the first call.
TEST(NcclDeviceFailures, ARankThatDoesNotComeIsNamedAfterTheTimeout) {
  const StandinReport report = run_standin_world(world_of(kRanks), [](RankContext& rank) {
    if (rank.group.rank() == 3) return rank.runtime.sleep_for(2 * kTimeout);
    call_and_wait(collectives()[0], rank);
  });
  const auto errors = errors_of(report.run);
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(errors[rank].has_value()) << rank;
    EXPECT_EQ(errors[rank]->kind, CommErrorKind::kTimeout) << errors[rank]->text;
    EXPECT_EQ(errors[rank]->culprits, std::vector{3}) << errors[rank]->text;
  }
  EXPECT_EQ(report.complaints, Lines{});
}

TEST(NcclDeviceFailures, AbortDuringEachCollectiveIsToldToAll) {
  for (const Collective& each : collectives()) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::string(each.name) + " " + std::to_string(seed));
      const StandinReport report =
          run_standin_world(world_of(kRanks, {}, seed), [&](RankContext& rank) {
            if (rank.group.rank() != 1) return call_and_wait(each, rank);
            rank.runtime.sleep_for(std::chrono::milliseconds(20));  // the others wait
            call_and_wait(each, rank, [&] { rank.group.abort(); });
          });
      expect_aborted(report, 1);
    }
  }
}

TEST(NcclDeviceFailures, ARankThatDiesWhileCallsAreInFlightIsNamed) {
  for (const Collective& each : collectives()) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::string(each.name) + " " + std::to_string(seed));
      const StandinReport report =
          run_standin_world(world_of(kRanks, {}, seed), [&](RankContext& rank) {
            rank.group.barrier()->wait();
            if (rank.group.rank() == 2) {
              const Buffers buffers(rank.group.size());
              const WorkPtr work = each.call(rank.group, buffers);
              standin::current_machine()->simulation().crash(2);
            }
            call_and_wait(each, rank);
          });
      expect_crashed(report, 2);
    }
  }
}

}  // namespace
}  // namespace ddproof
