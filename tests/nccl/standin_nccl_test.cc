// What the stand-in's NCCL notices: calls that do not fit, misuse of communicators, who is missing.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <string>
#include <vector>

#include "backends/nccl/communicator.h"
#include "tests/nccl/standin_world.h"

namespace ddproof {
namespace {

using Lines = std::vector<std::string>;

// A rank with its device, a stream, memory that was written, and a communicator.
class Rank {
 public:
  Rank(int rank, int size, const std::string& id, int device) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory, 256), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(memory, 1, 256, stream), cudaSuccess);
    ncclUniqueId unique{};
    id.copy(unique.internal, sizeof(unique.internal));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    EXPECT_EQ(ncclCommInitRankConfig(&communicator, size, unique, rank, &config), ncclInProgress);
    state = settled();
  }
  ~Rank() {
    EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
    (void)cudaFree(memory);
    (void)cudaStreamDestroy(stream);
  }
  // Once nothing is in progress, or nothing more comes of it.
  ncclResult_t settled() const {
    ncclResult_t now = ncclInProgress;
    for (int polls = 0; polls < 1000 && now == ncclInProgress; ++polls) {
      (void)ncclCommGetAsyncError(communicator, &now);
      standin::current_machine()->simulation().sleep(1000);
    }
    return now;
  }
  // What goes wrong within a millisecond.
  ncclResult_t failure() const {
    ncclResult_t now = ncclSuccess;
    for (int i = 0; i < 1000 && now == ncclSuccess; ++i) {
      now = settled();
      standin::current_machine()->simulation().sleep(1000);
    }
    return now;
  }
  ncclResult_t all_reduce(std::size_t count, ncclDataType_t type = ncclFloat32,
                          ncclRedOp_t op = ncclSum) const {
    return ncclAllReduce(memory, memory, count, type, op, communicator, stream);
  }

  cudaStream_t stream = nullptr;
  void* memory = nullptr;
  ncclComm_t communicator = nullptr;
  ncclResult_t state = ncclInProgress;
};

StandinReport run_ranks(int size, const std::function<void(const Rank&, int)>& body,
                        std::uint64_t seed = 1) {
  const std::string id = "one id";
  return run_on_machine(size, {}, seed, [&](int number) {
    const Rank rank(number, size, id, number);
    body(rank, number);
  });
}

// Rank 1 makes the second call, the others the first.
using Call = std::function<ncclResult_t(const Rank&)>;
Lines complaints_of(const Call& common, const Call& different) {
  const auto body = [&](const Rank& rank, int number) {
    (void)(number == 1 ? different : common)(rank);
    EXPECT_EQ(rank.failure(), ncclInvalidUsage);
  };
  return run_ranks(3, body).complaints;
}

Call all_reduce(std::size_t count, ncclDataType_t type = ncclFloat32, ncclRedOp_t op = ncclSum) {
  return [=](const Rank& rank) { return rank.all_reduce(count, type, op); };
}

Call broadcast(int root) {
  return [=](const Rank& rank) {
    return ncclBroadcast(rank.memory, rank.memory, 4, ncclInt8, root, rank.communicator,
                         rank.stream);
  };
}

void expect_named(const Lines& complaints, const std::string& one, const std::string& other) {
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_TRUE(complaints[0].starts_with("collective 1: ")) << complaints[0];
  EXPECT_NE(complaints[0].find("calls " + one), std::string::npos) << complaints[0];
  EXPECT_NE(complaints[0].find(other), std::string::npos) << complaints[0];
}

TEST(StandinNccl, CallsThatDifferAreNamedOnAllRanks) {
  const std::string usual = "ncclAllReduce of 4 float32, sum";
  const auto usual_and = [&](const Call& different, const std::string& named) {
    const Lines complaints = complaints_of(all_reduce(4), different);
    ASSERT_EQ(complaints.size(), 1u);
    EXPECT_NE(complaints[0].find(usual), std::string::npos) << complaints[0];
    EXPECT_NE(complaints[0].find(named), std::string::npos) << complaints[0];
  };
  usual_and(all_reduce(5), "ncclAllReduce of 5 float32, sum");
  usual_and(all_reduce(4, ncclInt32), "ncclAllReduce of 4 int32, sum");
  usual_and(all_reduce(4, ncclFloat32, ncclMax), "ncclAllReduce of 4 float32, max");
  usual_and(broadcast(0), "ncclBroadcast of 4 int8, root 0");
  expect_named(complaints_of(broadcast(0), broadcast(2)), "ncclBroadcast of 4 int8, root",
               "ncclBroadcast of 4 int8, root 2");
}

TEST(StandinNccl, MessagesThatDoNotFitAreNamed) {
  const StandinReport report = run_ranks(2, [](const Rank& rank, int number) {
    if (number == 0) {
      (void)ncclSend(rank.memory, 4, ncclInt8, 1, rank.communicator, rank.stream);
    } else {
      (void)ncclRecv(rank.memory, 2, ncclInt32, 0, rank.communicator, rank.stream);
    }
    EXPECT_EQ(rank.failure(), ncclInvalidUsage);
  });
  ASSERT_EQ(report.complaints.size(), 1u);
  EXPECT_NE(report.complaints[0].find("rank 0 calls ncclSend of 4 int8"), std::string::npos);
  EXPECT_NE(report.complaints[0].find("rank 1 ncclRecv of 2 int32"), std::string::npos);
}

TEST(StandinNccl, WhoDidNotComeIsNamed) {
  const StandinReport report = run_ranks(3, [](const Rank& rank, int number) {
    if (number != 2) (void)rank.all_reduce(4);
    EXPECT_EQ(rank.failure(), ncclSuccess);  // NCCL notices nothing
  });
  EXPECT_EQ(report.complaints, Lines{});
  ASSERT_EQ(report.missed.size(), 2u);
  for (const std::string& line : report.missed) {
    EXPECT_TRUE(
        line.ends_with("gave up collective 1 (ncclAllReduce of 4 float32, sum): rank 2 did "
                       "not come"))
        << line;
  }
}

// Under half of the seeds the first call is still in progress.
TEST(StandinNccl, ACallWhileAnotherIsInProgressIsNamed) {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const StandinReport report = run_ranks(
        1, [](const Rank& rank, int) { (void)rank.all_reduce(4), (void)rank.all_reduce(4); }, seed);
    for (const std::string& line : report.complaints) {
      EXPECT_EQ(line,
                "rank 0: ncclAllReduce: another call on the communicator is still in progress");
      ++named;
    }
  }
  EXPECT_GT(named, 0);
  EXPECT_LT(named, 20);
}

TEST(StandinNccl, ACommunicatorIsNotUsedAfterItsEnd) {
  const StandinReport report = run_on_machine(1, {}, 1, [](int) {
    ncclComm_t communicator = nullptr;
    {
      const Rank rank(0, 1, "one id", 0);
      communicator = rank.communicator;
    }
    EXPECT_EQ(ncclCommAbort(communicator), ncclInvalidUsage);
    EXPECT_EQ(ncclCommDestroy(nullptr), ncclInvalidUsage);
  });
  EXPECT_EQ(report.complaints,
            (Lines{"rank 0: ncclCommAbort: the communicator was destroyed or aborted",
                   "rank 0: ncclCommDestroy: the communicator is null"}));
}

TEST(StandinNccl, RanksThatComeTwiceOrWithOneDeviceOrAnotherSizeAreNamed) {
  struct Place {
    int rank, device, size;
  };
  const auto complaints_at = [](Place first, Place second) {
    return run_on_machine(2, {}, 1,
                          [&](int number) {
                            const Place& place = number == 0 ? first : second;
                            const Rank rank(place.rank, place.size, "one id", place.device);
                            EXPECT_EQ(rank.state, ncclInvalidUsage);
                          })
        .complaints;
  };
  const std::string call = "ncclCommInitRankConfig: ";
  EXPECT_EQ(complaints_at({0, 0, 2}, {0, 1, 2}), Lines{call + "rank 0 comes twice"});
  for (const std::string& line : complaints_at({0, 1, 2}, {1, 1, 2})) {
    EXPECT_TRUE(line.ends_with(" have one device, device 1 of host 0")) << line;
  }
  for (const std::string& line : complaints_at({0, 0, 2}, {1, 1, 3})) {
    EXPECT_TRUE(line.starts_with(call + "one rank says that there are ")) << line;
  }
}

TEST(StandinNccl, MemoryThatIsNotTheDevicesIsNamed) {
  const StandinReport report = run_ranks(1, [](const Rank& rank, int) {
    float here = 1;
    (void)ncclAllReduce(&here, rank.memory, 1, ncclFloat32, ncclSum, rank.communicator,
                        rank.stream);
    EXPECT_EQ(rank.failure(), ncclUnhandledCudaError);
  });
  ASSERT_FALSE(report.complaints.empty());
  EXPECT_EQ(report.complaints[0], "rank 0: ncclAllReduce: reads memory that is not the device's");
}

}  // namespace
}  // namespace ddproof
