// Calls on device memory: when they take the data, what wait() waits for, what is refused. That all
// operations are right on it is tested by the contract (on_device_contract.cc).
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/nccl/failed_ranks.h"
#include "tests/nccl/on_device.h"
#include "tests/support/refusal.h"

namespace ddproof {
namespace {

using standin::Script;
using Floats = std::vector<float>;

void expect_well(const StandinReport& report) {
  for (const auto& error : errors_of(report.run)) EXPECT_FALSE(error.has_value()) << error->text;
  EXPECT_EQ(report.complaints, Lines{});
}

// Work that takes the stream a while.
void occupy(const TestStream& stream) {
  for (int i = 0; i < 50; ++i) {
    (void)cudaLaunchHostFunc(
        stream.get(), [](void*) {}, nullptr);
  }
}

TEST(NcclDeviceBuffers, ACallTakesTheDataOfItsStreamAndGivesTheResultToIt) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    expect_well(run_standin_world(world_of(kRanks, {}, seed), [](RankContext& rank) {
      const TestStream stream;
      OnDevice<float> data(stream, Floats(100, 7));
      EXPECT_EQ(stream.synchronize(), cudaSuccess);
      occupy(stream);
      data.fill(Floats(100, static_cast<float>(rank.group.rank())));
      rank.group.all_reduce(data.buffer())->wait();
      EXPECT_EQ(data.values(), Floats(100, 6));
    }));
  }
}

TEST(NcclDeviceBuffers, WaitReturnsWhileTheDeviceStillWaitsForAPeer) {
  expect_well(run_standin_world(world_of(2), [](RankContext& rank) {
    const TestStream stream;
    const OnDevice<float> data(stream, {1}), more(stream, {2});
    if (rank.group.rank() == 1) rank.runtime.sleep_for(std::chrono::seconds(1));
    const TimePoint begin = rank.runtime.now();
    const WorkPtr first = rank.group.all_reduce(data.buffer());
    const WorkPtr second = rank.group.all_reduce(more.buffer());
    second->wait();
    first->wait();
    if (rank.group.rank() == 0) {
      EXPECT_LT(rank.runtime.now() - begin, std::chrono::milliseconds(10));
      EXPECT_FALSE(first->is_completed());
      EXPECT_FALSE(second->is_completed());
    }
    EXPECT_EQ(stream.synchronize(), cudaSuccess);
    EXPECT_TRUE(first->is_completed());
    EXPECT_TRUE(second->is_completed());
    EXPECT_EQ(first->error(), nullptr);
    EXPECT_EQ(data.values(), Floats{2});
    EXPECT_EQ(more.values(), Floats{4});
  }));
}

TEST(NcclDeviceBuffers, CallsOfTwoStreamsAndTwoGroupsAreInFlightAtOnce) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    expect_well(run_standin_world(world_of(kRanks, {}, seed), [](RankContext& rank) {
      const auto other = rank.group.split(0, 0);
      const auto me = static_cast<float>(rank.group.rank());
      const TestStream one, two;
      const OnDevice<float> a(one, {me, me}), b(two, {me + 10}), c(one, {me + 20}),
          d(two, {me + 30});
      const std::vector<WorkPtr> works{
          rank.group.all_reduce(a.buffer()), rank.group.all_reduce(b.buffer()),
          other->all_reduce(c.buffer()), other->broadcast(d.buffer(), 2)};
      for (const WorkPtr& work : works) work->wait();
      EXPECT_EQ(a.values(), (Floats{6, 6}));
      EXPECT_EQ(b.values(), Floats{46});
      EXPECT_EQ(c.values(), Floats{86});
      EXPECT_EQ(d.values(), Floats{32});
    }));
  }
}

TEST(NcclDeviceBuffers, HostAndDeviceMemoryMixBetweenCallsAndRanks) {
  expect_well(run_standin_world(world_of(2), [](RankContext& rank) {
    const TestStream stream;
    const bool is_first = rank.group.rank() == 0;
    const OnDevice<float> on_device(stream, {1});
    Floats on_host{2};
    rank.group.all_reduce(is_first ? on_device.buffer() : Buffer::of(on_host))->wait();
    if (!is_first) {
      EXPECT_EQ(on_host, Floats{3});
    }
    rank.group.all_reduce(is_first ? Buffer::of(on_host) : on_device.buffer())->wait();
    const Floats on_this = is_first ? on_host : on_device.values();
    EXPECT_EQ(on_this, Floats{3});
    if (is_first) {
      EXPECT_EQ(on_device.values(), Floats{3});
    }
  }));
}

// The group is left while its calls are in flight: they end first.
TEST(NcclDeviceBuffers, AGroupThatEndsFinishesItsCalls) {
  expect_well(run_standin_world(world_of(2), [](RankContext& rank) {
    const TestStream stream;
    const OnDevice<float> data(stream, {1});
    auto part = rank.group.split(0, 0);
    const WorkPtr work = part->all_reduce(data.buffer());
    part.reset();
    EXPECT_TRUE(work->is_completed());
    work->wait();
    EXPECT_EQ(data.values(), Floats{2});
  }));
}

// Every rank sends first: one after another, the calls would wait for each other.
TEST(NcclDeviceBuffers, CoalescedCallsAreOneGroup) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    expect_well(run_standin_world(world_of(kRanks, {}, seed), [](RankContext& rank) {
      ProcessGroup& group = rank.group;
      const int me = group.rank();
      const auto mine = static_cast<float>(me);
      const TestStream one, two;
      const OnDevice<float> out(one, {mine}), in(one, {-1}), sum(two, Floats(3, mine)),
          mean(one, Floats(5, mine));
      WorkPtr last;
      group.coalesce([&] {
        group.send(out.buffer(), (me + 1) % kRanks);
        group.recv(in.buffer(), (me + kRanks - 1) % kRanks);
        group.all_reduce(sum.buffer());
        last = group.all_reduce(mean.buffer(), ReduceOp::kAverage);
      });
      last->wait();  // of all of them
      EXPECT_EQ(in.values(), Floats{static_cast<float>((me + kRanks - 1) % kRanks)});
      EXPECT_EQ(sum.values(), Floats(3, 6));
      EXPECT_EQ(mean.values(), Floats(5, 1.5));

      Floats host_out{mine}, host_in{-1}, host_max(4, mine);
      WorkPtr works[3];
      group.coalesce([&] {
        works[0] = group.send(ConstBuffer::of(host_out), (me + 1) % kRanks);
        works[1] = group.recv(Buffer::of(host_in), (me + kRanks - 1) % kRanks);
        works[2] = group.all_reduce(Buffer::of(host_max), ReduceOp::kMax);
      });
      for (const WorkPtr& work : works) work->wait();
      EXPECT_EQ(host_in[0], static_cast<float>((me + kRanks - 1) % kRanks));
      EXPECT_EQ(host_max, Floats(4, 3));
    }));
  }
}

TEST(NcclDeviceBuffers, ACoalesceHasOneKindOfMemory) {
  expect_well(run_standin_world(world_of(1), [](RankContext& rank) {
    const TestStream stream;
    const OnDevice<float> on_device(stream, {1});
    Floats on_host{1};
    EXPECT_NE(refusal_of([&] {
                rank.group.coalesce([&] {
                  rank.group.all_reduce(on_device.buffer());
                  rank.group.all_reduce(Buffer::of(on_host));
                });
              }).find("on device memory and on host memory"),
              std::string::npos);
  }));
}

// What goes wrong, over many seeds, when the n-th of these CUDA calls of rank 1 does nothing.
std::set<std::string> planted(const char* call, int number) {
  std::set<std::string> wrong;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Script skip{1, call, number, Script::Effect::kSkip, 0};
    Floats seen;
    const StandinReport report =
        run_standin_world(world_of(2, {skip}, seed), [&](RankContext& rank) {
          const TestStream stream;
          OnDevice<float> data(stream, Floats(10, 1));
          EXPECT_EQ(stream.synchronize(), cudaSuccess);
          occupy(stream);
          data.fill(Floats(10, 2));
          rank.group.all_reduce(data.buffer())->wait();
          const Floats values = data.values();
          if (rank.group.rank() == 1) seen = values;
        });
    for (const std::string& complaint : report.complaints) wrong.insert(complaint);
    if (seen != Floats(10, 4)) wrong.insert("result");
  }
  return wrong;
}

TEST(NcclDeviceBuffers, AMissingEventWaitIsFoundUnderSomeSeed) {
  EXPECT_EQ(planted("no call", 1), std::set<std::string>{});
  // Before NCCL: the communication stream does not wait for the caller's. After it: nor the other
  // way round.
  EXPECT_TRUE(planted("cudaStreamWaitEvent", 1).contains("result"));
  EXPECT_TRUE(planted("cudaStreamWaitEvent", 2).contains("result"));
  EXPECT_TRUE(planted("cudaEventRecord", 1).contains("result"));
}

TEST(NcclDeviceBuffers, MemoryAndStreamsOfAnotherDeviceAreRefusedByName) {
  expect_well(run_standin_world(world_of(2), [](RankContext& rank) {
    if (rank.group.rank() == 0) {
      const TestStream stream;
      const OnDevice<float> mine(stream, {1});
      EXPECT_EQ(cudaSetDevice(3), cudaSuccess);
      {
        const TestStream elsewhere;
        const OnDevice<float> other(elsewhere, {1});
        const auto refused = [&](const Buffer& buffer) {
          return refusal_of([&] {
            rank.group.all_reduce(buffer, ReduceOp::kSum, {}, {"t.cc", 7, ""});
          });
        };
        const std::string who =
            "rank 0/2 [nccl] all_reduce #1 (sum, float32 [1]) at t.cc:7: the buffer \"in\": ";
        EXPECT_EQ(refused(other.on(stream.get())),
                  who + "it is memory of device 3, this rank's device is 0");
        EXPECT_EQ(refused(mine.on(elsewhere.get())),
                  who + "its stream is of device 3, this rank's device is 0");
        Floats host{1};
        EXPECT_EQ(refused(Buffer(host.data(), DType::kFloat32, Layout(1), stream.get())),
                  who + "it has a stream, but is not in device memory, this rank's device is 0");
      }
      EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    }
    rank.group.barrier()->wait();  // a refused call leaves the group usable
  }));
}

TEST(NcclDeviceBuffers, ABufferThatIsFreedTooEarlyIsNamed) {
  std::set<std::string> complaints;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const StandinReport report = run_standin_world(world_of(2, {}, seed), [](RankContext& rank) {
      const TestStream stream;
      void* data = nullptr;
      (void)cudaMallocAsync(&data, 4, stream.get());
      (void)cudaMemsetAsync(data, 0, 4, stream.get());
      const WorkPtr work =
          rank.group.all_reduce(Buffer(data, DType::kFloat32, Layout(1), stream.get()));
      if (rank.group.rank() == 1) (void)cudaFreeAsync(data, stream.get());  // before wait()
      work->wait();
      if (rank.group.rank() == 0) (void)cudaFreeAsync(data, stream.get());
      rank.group.barrier()->wait();
    });
    complaints.insert(report.complaints.begin(), report.complaints.end());
  }
  EXPECT_TRUE(complaints.contains("rank 1: ncclAllReduce: reads memory that was freed"));
}

}  // namespace
}  // namespace ddproof
