// What a call refuses at once, asynchrony, and barriers.
#include <atomic>

#include "tests/contract/contract.h"
#include "tests/support/refusal.h"

namespace ddproof::contract {
namespace {

class Calls : public Contract {};
DDPROOF_CONTRACT(Calls);

TEST_P(Calls, RootsOutsideTheGroupAreRefused) {
  const std::string who = "rank 0/1 [" + GetParam() + "] ";
  run(1, [&](RankContext& rank) {
    std::vector<float> data(4);
    const auto text = refusal_of([&] {
      rank.group.broadcast(buffer(data), 1, {}, {"t.cc", 7, ""});
    });
    EXPECT_EQ(text,
              who + "broadcast #1 (float32 [4], root 1) at t.cc:7: root is 1, allowed are 0 to 0");
    EXPECT_NE(refusal_of([&] { rank.group.reduce(buffer(data), -1); }).find("root is -1"),
              std::string::npos);
  });
}

TEST_P(Calls, PeersOutsideTheGroupAreRefused) {
  run(1, [](RankContext& rank) {
    std::vector<float> data(4);
    EXPECT_NE(
        refusal_of([&] { rank.group.send(buffer(data), 1); }).find("peer is 1, allowed are 0"),
        std::string::npos);
    EXPECT_NE(refusal_of([&] { rank.group.recv(buffer(data), 0); }).find("itself"),
              std::string::npos);
    EXPECT_NE(refusal_of([&] { rank.group.recv(buffer(data), -1); }).find("peer is -1"),
              std::string::npos);
  });
}

TEST_P(Calls, ViewsWithHolesAreRefused) {
  run(1, [](RankContext& rank) {
    std::vector<float> data(8);
    const std::vector<std::int64_t> sizes{4}, strides{2};
    const Buffer every_other(data.data(), DType::kFloat32, Layout::strided(sizes, strides));
    EXPECT_NE(refusal_of([&] { rank.group.all_reduce(every_other); }).find("the view has holes"),
              std::string::npos);
  });
}

TEST_P(Calls, SizesThatDoNotFitAreRefused) {
  const int size = world_sizes().back();
  run(size, [](RankContext& rank) {
    std::vector<float> in(4), out(5);
    EXPECT_NE(refusal_of([&] {
                rank.group.all_gather(buffer(in), buffer(out));
              }).find("the larger buffer has 5 elements, expected"),
              std::string::npos);
    if (rank.group.size() > 1) {
      std::vector<float> odd(static_cast<std::size_t>(rank.group.size()) + 1), even(odd);
      EXPECT_NE(
          refusal_of([&] { rank.group.all_to_all(buffer(odd), buffer(even)); }).find("multiple"),
          std::string::npos);
    }
    rank.group.barrier()->wait();  // a refused call leaves the group usable
  });
}

TEST_P(Calls, SizesBeyond32BitsStayExact) {
  run(1, [](RankContext& rank) {
    // Never touched: the call is refused for its size.
    void* nowhere = &rank;
    for (std::int64_t count :
         {(std::int64_t{1} << 31) - 1, std::int64_t{1} << 31, (std::int64_t{1} << 32) + 1}) {
      const Buffer huge(nowhere, DType::kInt8, Layout(count));
      std::vector<std::int8_t> one(1);
      EXPECT_NE(refusal_of([&] {
                  rank.group.all_gather(huge, buffer(one));
                }).find("expected 1 x " + std::to_string(count)),
                std::string::npos);
    }
  });
}

// The streams are never used: the calls are refused for them.
TEST_P(Calls, DeviceMemoryIsRefusedWhereNoDeviceIs) {
  run(1, [](RankContext& rank) {
    if (rank.group.capabilities().device_buffers) return;
    std::vector<float> data(4);
    const Buffer on_device(data.data(), DType::kFloat32, Layout(4), &rank);
    const CommError error = comm_error_of([&] { rank.group.all_reduce(on_device); });
    EXPECT_EQ(error.kind(), CommErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("takes no device memory"), std::string::npos);
    const Buffer empty(nullptr, DType::kFloat32, Layout(0), &rank);
    rank.group.all_reduce(empty)->wait();
  });
}

TEST_P(Calls, BuffersOfTwoStreamsAreRefused) {
  run(1, [](RankContext& rank) {
    std::vector<float> in(4), out(4);
    const Buffer on_device(out.data(), DType::kFloat32, Layout(4), &rank);
    EXPECT_NE(
        refusal_of([&] { rank.group.all_gather(buffer(in), on_device); }).find("of two streams"),
        std::string::npos);
    rank.group.barrier()->wait();
  });
}

TEST_P(Calls, ManyCallsMayBeInFlightAndAreWaitedForInAnyOrder) {
  run(world_sizes().back(), [](RankContext& rank) {
    constexpr int kCalls = 12;
    std::vector<std::vector<int>> data;
    for (int i = 0; i < kCalls; ++i) data.push_back(std::vector<int>(100, i + rank.group.rank()));
    std::vector<WorkPtr> works;
    for (int i = 0; i < kCalls; ++i) {
      works.push_back(i % 3 == 2 ? rank.group.broadcast(buffer(data[i]), 0)
                                 : rank.group.all_reduce(buffer(data[i])));
    }
    const int size = rank.group.size();
    for (int i = kCalls - 1; i >= 0; --i) {
      works[i]->wait();
      EXPECT_TRUE(works[i]->is_completed());
      EXPECT_EQ(works[i]->error(), nullptr);
      const int expected = i % 3 == 2 ? i : size * i + size * (size - 1) / 2;
      EXPECT_EQ(data[i], std::vector<int>(100, expected)) << i;
      works[i]->wait();  // again is fine
    }
  });
}

TEST_P(Calls, DroppingTheHandleDoesNotCancelTheCall) {
  run(world_sizes().back(), [](RankContext& rank) {
    std::vector<int> data{1};
    rank.group.all_reduce(buffer(data));
    rank.group.barrier()->wait();  // calls run in order
    EXPECT_EQ(data[0], rank.group.size());
  });
}

TEST_P(Calls, NobodyLeavesABarrierBeforeTheLastHasEntered) {
  for (int size : world_sizes()) {
    std::atomic<int> entered = 0;
    run(size, [&](RankContext& rank) {
      for (int round = 1; round <= 5; ++round) {
        ++entered;
        rank.group.barrier()->wait();
        EXPECT_GE(entered.load(), round * size);
        rank.group.monitored_barrier()->wait();
      }
    });
  }
}

TEST_P(Calls, ColumnMajorBuffersReduceElementByElement) {
  run(world_sizes().back(), [](RankContext& rank) {
    std::vector<int> data{1, 2, 3, 4, 5, 6};
    const std::vector<std::int64_t> sizes{3, 2}, strides{1, 3};
    rank.group.all_reduce(Buffer(data.data(), DType::kInt32, Layout::strided(sizes, strides)))
        ->wait();
    for (int i = 0; i < 6; ++i) EXPECT_EQ(data[i], (i + 1) * rank.group.size());
  });
}

}  // namespace
}  // namespace ddproof::contract
