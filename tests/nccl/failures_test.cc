// Every failure ends on every live rank with an error of the same kind, soon, in virtual time; and
// the backend misuses nothing while it fails.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <string>
#include <vector>

#include "tests/nccl/failed_ranks.h"

namespace ddproof {
namespace {

using standin::Script;

struct CallBuffers {
  explicit CallBuffers(int size) : many(8 * static_cast<std::size_t>(size), 1), more(many) {}
  std::vector<float> one = std::vector<float>(8, 1);
  std::vector<float> many;  // a part for each rank
  std::vector<float> more;
};

using BufferCall = std::function<WorkPtr(ProcessGroup&, CallBuffers&)>;

struct NamedCall {
  const char* name;  // of NCCL's function
  BufferCall call;
};

Buffer all_of(std::vector<float>& data) { return Buffer::of(std::span(data)); }

const std::vector<NamedCall>& named_calls() {
  static const std::vector<NamedCall> all = {
      {"ncclAllReduce", [](auto& group, auto& b) { return group.all_reduce(all_of(b.one)); }},
      {"ncclBroadcast", [](auto& group, auto& b) { return group.broadcast(all_of(b.one), 0); }},
      {"ncclReduce", [](auto& group, auto& b) { return group.reduce(all_of(b.one), 0); }},
      {"ncclAllGather",
       [](auto& group, auto& b) { return group.all_gather(all_of(b.one), all_of(b.many)); }},
      {"ncclReduceScatter",
       [](auto& group, auto& b) { return group.reduce_scatter(all_of(b.many), all_of(b.one)); }},
      {"ncclSend",
       [](auto& group, auto& b) { return group.gather(all_of(b.one), all_of(b.many), 0); }},
      {"ncclRecv",
       [](auto& group, auto& b) { return group.scatter(all_of(b.many), all_of(b.one), 0); }},
      {"ncclSend",
       [](auto& group, auto& b) { return group.all_to_all(all_of(b.many), all_of(b.more)); }},
      {"ncclAllReduce", [](auto& group, auto&) { return group.barrier(); }}};
  return all;
}

void call_and_wait(const BufferCall& call, ProcessGroup& group) {
  CallBuffers buffers(group.size());
  call(group, buffers)->wait();
}

// A world whose ranks all make the call twice.
StandinReport run_twice(const BufferCall& call, std::vector<Script> scripts,
                        std::uint64_t seed = 1) {
  return run_standin_world(world_of(kRanks, std::move(scripts), seed), [&](RankContext& rank) {
    call_and_wait(call, rank.group);
    call_and_wait(call, rank.group);
    // A gather's or scatter's other ranks may be done before the failure.
    rank.group.barrier()->wait();
  });
}

TEST(NcclFailures, ACallThatFailsOnOneRankEndsAllOfThem) {
  for (const NamedCall& each : named_calls()) {
    SCOPED_TRACE(each.name);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Script script{2, each.name, 1, Script::Effect::kReturn, ncclSystemError};
      expect_all(run_twice(each.call, {script}, seed), CommErrorKind::kPeerLost, {2},
                 "rank 2 is lost (");
    }
  }
}

TEST(NcclFailures, AnAsynchronousErrorOnOneRankEndsAllOfThem) {
  for (const NamedCall& each : named_calls()) {
    SCOPED_TRACE(each.name);
    const Script script{2, each.name, 1, Script::Effect::kAsync, ncclInternalError};
    expect_all(run_twice(each.call, {script}), CommErrorKind::kPeerLost, {2},
               "internal error (scripted)");
  }
}

TEST(NcclFailures, ADeviceThatIsLostEndsAllOfThem) {
  const BufferCall& all_reduce = named_calls()[0].call;
  for (const char* call : {"ncclAllReduce", "cudaEventQuery", "cudaMemcpyAsync"}) {
    SCOPED_TRACE(call);
    const Script script{1, call, 1, Script::Effect::kLoseDevice, 0};
    expect_all(run_twice(all_reduce, {script}), CommErrorKind::kPeerLost, {1}, "rank 1 is lost (");
  }
}

TEST(NcclFailures, OneRankOutOfMemoryEndsAllOfThem) {
  const BufferCall& all_reduce = named_calls()[0].call;
  for (const std::string call : {"cudaMallocAsync of 256", "cudaMallocHost of 256"}) {
    const std::string name = call.substr(0, call.find(' '));
    const Script script{3, name, 1, Script::Effect::kReturn, cudaErrorMemoryAllocation};
    expect_all(run_twice(all_reduce, {script}), CommErrorKind::kPeerLost, {3},
               "rank 3 is lost (" + call + " bytes: out of memory)");
  }
}

TEST(NcclFailures, AnOperationThatHangsMeetsTheTimeout) {
  for (const NamedCall& each : named_calls()) {
    SCOPED_TRACE(each.name);
    const Script script{2, each.name, 1, Script::Effect::kHang, 0};
    const StandinReport report = run_twice(each.call, {script});
    for (const auto& error : errors_of(report.run)) {
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->kind, CommErrorKind::kTimeout) << error->text;
    }
    EXPECT_EQ(report.complaints, Lines{});
    EXPECT_LE(Duration(report.run.virtual_time), 2 * kBound);
  }
}

TEST(NcclFailures, AbortDuringEachCollectiveIsToldToAll) {
  for (const NamedCall& each : named_calls()) {
    SCOPED_TRACE(each.name);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const StandinReport report =
          run_standin_world(world_of(kRanks, {}, seed), [&](RankContext& rank) {
            CallBuffers buffers(kRanks);
            if (rank.group.rank() == 1) {
              // While the others wait for this rank.
              rank.runtime.sleep_for(std::chrono::milliseconds(20));
              const WorkPtr work = each.call(rank.group, buffers);
              rank.group.abort();
              work->wait();
            } else {
              call_and_wait(each.call, rank.group);
            }
            rank.group.barrier()->wait();
          });
      expect_aborted(report, 1);
    }
  }
}

TEST(NcclFailures, AWrongTypeOnOneRankIsAMismatchForAll) {
  const StandinReport report =
      run_standin_world(world_of(kRanks), [](RankContext& rank) {  // not checked: NCCL's own view
        std::vector<float> floats(4, 1);
        std::vector<int> integers(4, 1);
        const bool is_odd = rank.group.rank() == 2;
        rank.group.all_reduce(is_odd ? Buffer::of(integers) : Buffer::of(floats))->wait();
      });
  for (const auto& error : errors_of(report.run)) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind, CommErrorKind::kMismatch) << error->text;
    EXPECT_NE(error->text.find("rank 2 ncclAllReduce of 4 int32, sum"), std::string::npos)
        << error->text;
  }
  ASSERT_EQ(report.complaints.size(), 1u);
}

TEST(NcclFailures, ARankThatDiesInACallIsNamed) {
  // It unwinds without a word, as a killed process ends.
  const StandinReport report = run_standin_world(world_of(kRanks), [](RankContext& rank) {
    rank.group.barrier()->wait();
    if (rank.group.rank() == 2) {
      sim::Simulation& simulation = standin::current_machine()->simulation();
      simulation.crash(2);
    }
    rank.group.barrier()->wait();
  });
  expect_crashed(report, 2);
}

// Rank 3 makes one barrier and leaves. The others need no more of it for a while, then they do.
TEST(NcclFailures, ARankThatLeavesEndsTheCallsThatNeedItAndNoOthers) {
  const StandinReport report = run_standin_world(world_of(kRanks), [](RankContext& rank) {
    rank.group.barrier()->wait();
    const int me = rank.group.rank();
    if (me == 3) return;
    rank.runtime.sleep_for(std::chrono::seconds(1));
    std::vector<float> data{static_cast<float>(me)};
    if (me == 0) rank.group.send(all_of(data), 1)->wait();
    if (me == 1) rank.group.recv(all_of(data), 0)->wait();
    if (me == 1) {
      EXPECT_EQ(data[0], 0);
    }
    rank.group.barrier({.timeout = std::chrono::hours(1)})->wait();
  });
  const auto errors = errors_of(report.run);
  EXPECT_FALSE(errors[3].has_value());
  for (const int rank : {0, 1, 2}) {
    ASSERT_TRUE(errors[rank].has_value()) << rank;
    EXPECT_EQ(errors[rank]->kind, CommErrorKind::kPeerLost) << errors[rank]->text;
    EXPECT_NE(errors[rank]->text.find("barrier #2 at"), std::string::npos) << errors[rank]->text;
    EXPECT_NE(errors[rank]->text.find("rank 3 is lost (it left the group)"), std::string::npos);
  }
  EXPECT_EQ(report.complaints, Lines{});
  EXPECT_LE(Duration(report.run.virtual_time), std::chrono::seconds(4));
}

// Freeing waits for all that is on the device; so nothing may be freed between the calls of a
// group.
TEST(NcclFailures, AGroupThatNeedsMoreMemoryDoesNotWaitForAnother) {
  const StandinReport report = run_standin_world(world_of(2), [](RankContext& rank) {
    const auto other = rank.group.split(0, 0);
    std::vector<float> small(1, 1), large(100'000, 1), larger(300'000, 1);
    other->all_reduce(all_of(small))->wait();
    WorkPtr waiting;
    if (rank.group.rank() == 0) waiting = rank.group.all_reduce(all_of(small));
    other->all_reduce(all_of(large))->wait();
    other->all_reduce(all_of(larger))->wait();
    if (rank.group.rank() == 1) waiting = rank.group.all_reduce(all_of(small));
    waiting->wait();
    EXPECT_EQ(larger.back(), 2);
  });
  for (const auto& error : errors_of(report.run)) EXPECT_FALSE(error.has_value()) << error->text;
  EXPECT_EQ(report.complaints, Lines{});
}

}  // namespace
}  // namespace ddproof
