// Every reduction on every type, operation and size, against a serial computation: exactly.
#include "tests/contract/contract.h"

namespace ddproof::contract {
namespace {

// Without the checks of calls, which other tests cover: they would double the time.
class Reductions : public Contract {
 protected:
  void run_unchecked(int size, const std::function<void(RankContext&)>& body) const {
    run(size, body, false);
  }
};
DDPROOF_CONTRACT(Reductions);

// body(T{}, op, count) for every type and operation, each on two of the counts, in turn.
template <class Body>
void for_each_case(Body&& body) {
  std::size_t turn = 0;
  for_each_type([&]<class T>(T) {
    for (ReduceOp op : all_reduce_ops()) {
      ++turn;
      for (std::size_t shift : {0u, 2u}) {
        const std::int64_t count = counts()[(turn + turn / 5 + shift) % counts().size()];
        SCOPED_TRACE(std::string(element_of<T>().name()) + " " + to_string(op) + " " +
                     std::to_string(count));
        body(T{}, op, count);
      }
    }
  });
}

TEST_P(Reductions, AllReduceIsTheSerialReductionOnEveryRank) {
  for (int size : world_sizes()) {
    run_unchecked(size, [](RankContext& rank) {
      for_each_case([&]<class T>(T, ReduceOp op, std::int64_t count) {
        auto data = input_of<T>(op, rank.group.rank(), count);
        rank.group.all_reduce(buffer(data), op)->wait();
        EXPECT_EQ(data, reduced<T>(op, rank.group.size(), count));
      });
    });
  }
}

TEST_P(Reductions, ReduceChangesTheRootAlone) {
  for (int size : world_sizes()) {
    run_unchecked(size, [](RankContext& rank) {
      int root = 0;
      for_each_case([&]<class T>(T, ReduceOp op, std::int64_t count) {
        auto data = input_of<T>(op, rank.group.rank(), count);
        const auto before = data;
        rank.group.reduce(buffer(data), root, op)->wait();
        const bool at_root = root == rank.group.rank();
        EXPECT_EQ(data, at_root ? reduced<T>(op, rank.group.size(), count) : before);
        root = (root + 1) % rank.group.size();
      });
    });
  }
}

TEST_P(Reductions, ReduceScatterKeepsTheRanksOwnPart) {
  for (int size : world_sizes()) {
    run_unchecked(size, [](RankContext& rank) {
      for_each_case([&]<class T>(T, ReduceOp op, std::int64_t count) {
        const int size = rank.group.size();
        auto in = input_of<T>(op, rank.group.rank(), size * count);
        const auto before = in;
        std::vector<T> out(static_cast<std::size_t>(count));
        rank.group.reduce_scatter(buffer(in), buffer(out), op)->wait();
        const auto whole = reduced<T>(op, size, size * count);
        const auto part = whole.begin() + rank.group.rank() * count;
        EXPECT_EQ(out, std::vector<T>(part, part + count));
        EXPECT_EQ(in, before);
      });
    });
  }
}

TEST_P(Reductions, RanksHoldTheSameBitsAlsoWhereSumsRound) {
  if (!make_tested_backend(GetParam())->capabilities().same_bits_every_rank) GTEST_SKIP();
  for (int size : world_sizes()) {
    // 1000 floats take Gloo's bcube, 600,000 its ring.
    for (std::size_t count : {1000u, 600'000u}) {
      std::vector<std::vector<float>> results(static_cast<std::size_t>(size));
      run_unchecked(size, [&](RankContext& rank) {
        std::vector<float> data(count);
        for (std::size_t i = 0; i < count; ++i) {
          data[i] = 1.0f / static_cast<float>(3 + i % 1013 + 17 * rank.group.rank());
        }
        rank.group.all_reduce(buffer(data))->wait();
        results[static_cast<std::size_t>(rank.group.rank())] = data;
      });
      for (const auto& result : results) EXPECT_TRUE(result == results[0]) << size << " " << count;
    }
  }
}

TEST_P(Reductions, LargeBuffersReduceExactly) {
  const int size = world_sizes().back();
  run_unchecked(size, [size](RankContext& rank) {
    auto data = input_of<std::int64_t>(ReduceOp::kSum, rank.group.rank(), 300'001);
    rank.group.all_reduce(buffer(data))->wait();
    EXPECT_TRUE(data == reduced<std::int64_t>(ReduceOp::kSum, size, 300'001));
  });
}

}  // namespace
}  // namespace ddproof::contract
