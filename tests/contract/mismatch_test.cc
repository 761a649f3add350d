// Ranks that call different things: an error of the same kind on every rank, before data moves.
#include <array>
#include <mutex>

#include "tests/contract/contract.h"

namespace ddproof::contract {
namespace {

using Caller = std::function<void(ProcessGroup&)>;

class Mismatch : public PeerContract {
 protected:
  // Rank `odd` of `size` makes the odd call, the others the common one; returns each one's error.
  std::vector<CommError> errors_of(int size, int odd, const Caller& common,
                                   const Caller& different) {
    std::vector<CommError> errors(static_cast<std::size_t>(size),
                                  CommError(CommErrorKind::kUnsupported, "none"));
    run(size, [&](RankContext& rank) {
      const bool is_odd = rank.group.rank() == odd;
      errors[static_cast<std::size_t>(rank.group.rank())] =
          comm_error_of([&] { (is_odd ? different : common)(rank.group); });
    });
    return errors;
  }
  void expect_mismatch(const std::string& what, const Caller& common, const Caller& different) {
    SCOPED_TRACE(what);
    for (const CommError& error : errors_of(3, 1, common, different)) {
      EXPECT_EQ(error.kind(), CommErrorKind::kMismatch) << error.what();
      EXPECT_EQ(error.culprits(), std::vector{1}) << error.what();
    }
  }
};
DDPROOF_CONTRACT(Mismatch);

constexpr CallSite kSite{"train.cc", 10, "step"};
constexpr CallSite kOtherSite{"train.cc", 20, "step"};

template <class T>
Caller all_reduce_of(std::size_t count, ReduceOp op = ReduceOp::kSum,
                     const std::string& label = "") {
  return [=](ProcessGroup& group) {
    std::vector<T> data(count, T(1));
    const auto before = data;
    try {
      group.all_reduce(buffer(data), op, {.label = label}, kSite)->wait();
    } catch (const CommError&) {
      EXPECT_EQ(data, before) << "data moved before the error";
      throw;
    }
  };
}

Caller all_reduce(std::size_t count, ReduceOp op = ReduceOp::kSum, const std::string& label = "") {
  return all_reduce_of<float>(count, op, label);
}

Caller broadcast(int root) {
  return [=](ProcessGroup& group) {
    std::vector<float> data(4);
    group.broadcast(buffer(data), root, {}, kSite)->wait();
  };
}

Caller barrier(CallSite site = kSite) {
  return [=](ProcessGroup& group) { group.barrier({}, site)->wait(); };
}

Caller matrix(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  return [=](ProcessGroup& group) {
    std::vector<float> data(6);
    group
        .all_reduce(Buffer(data.data(), DType::kFloat32, Layout::strided(sizes, strides)),
                    ReduceOp::kSum, {}, kSite)
        ->wait();
  };
}

TEST_P(Mismatch, EveryFieldOfACallIsCompared) {
  expect_mismatch("operation", all_reduce(4), broadcast(0));
  expect_mismatch("barrier against all_reduce", barrier(), all_reduce(4));
  expect_mismatch("reduce operation", all_reduce(4), all_reduce(4, ReduceOp::kMax));
  expect_mismatch("root", broadcast(0), broadcast(2));
  expect_mismatch("dtype", all_reduce(4), all_reduce_of<double>(4));
  expect_mismatch("dtype of the same size", all_reduce(4), all_reduce_of<std::int32_t>(4));
  expect_mismatch("count", all_reduce(4), all_reduce(8));
  expect_mismatch("zero count", all_reduce(4), all_reduce(0));
  expect_mismatch("label", all_reduce(4, ReduceOp::kSum, "a"), all_reduce(4, ReduceOp::kSum, "b"));
  expect_mismatch("call site", barrier(kSite), barrier(kOtherSite));
  expect_mismatch("shape", matrix({3, 2}, {2, 1}), matrix({2, 3}, {3, 1}));
  expect_mismatch("layout", matrix({3, 2}, {2, 1}), matrix({3, 2}, {1, 3}));
  expect_mismatch(
      "wait_all_ranks", [](ProcessGroup& g) { g.monitored_barrier(false, {}, kSite)->wait(); },
      [](ProcessGroup& g) { g.monitored_barrier(true, {}, kSite)->wait(); });
  expect_mismatch("split", barrier(), [](ProcessGroup& g) { g.split(0, 0, kSite); });
}

// P16: ranks 0 to 2 call barriers A and B, rank 3 only B.
TEST_P(Mismatch, TheTextNamesRankNumberAndBothCalls) {
  const auto errors = errors_of(4, 3, barrier(kSite), barrier(kOtherSite));
  const std::string tail =
      ": the ranks made different calls: ranks 0, 1, 2: barrier #1 at train.cc:10; rank 3: barrier "
      "#1 at train.cc:20; rank 3 differs from the majority; make every rank call the same, in the "
      "same order";
  EXPECT_EQ(errors[0].what(), "rank 0/4 [" + GetParam() + "] barrier #1 at train.cc:10" + tail);
  EXPECT_EQ(errors[3].what(), "rank 3/4 [" + GetParam() + "] barrier #1 at train.cc:20" + tail);
}

TEST_P(Mismatch, ASiteMayLeaveItsLineOut) {
  const CallSite here{"job.json", 5, "", false}, there{"job.json", 123, "", false};
  run(3, [&](RankContext& rank) {
    rank.group.barrier({}, rank.group.rank() == 1 ? there : here)->wait();
    const auto label = rank.group.rank() == 2 ? "B" : "A";
    const CommError error = comm_error_of([&] {
      rank.group.barrier({.label = label}, rank.group.rank() == 1 ? there : here)->wait();
    });
    EXPECT_EQ(error.culprits(), std::vector{2});
    EXPECT_NE(std::string(error.what())
                  .find("made different calls: rank 0: barrier #2 (A) at job.json:5; rank 1: "
                        "barrier #2 (A) at job.json:123; rank 2: barrier #2 (B) at job.json:5; "
                        "rank 2 differs from the majority; "),
              std::string::npos)
        << error.what();
  });
}

// P24: two tensors of one shape in swapped order, told apart by their labels or call sites.
TEST_P(Mismatch, SwappedTensorsOfOneShapeAreNoticed) {
  const auto a = all_reduce(2, ReduceOp::kSum, "weight"), b = all_reduce(2, ReduceOp::kSum, "bias");
  for (const CommError& error : errors_of(
           2, 1, [&](ProcessGroup& g) { a(g), b(g); }, [&](ProcessGroup& g) { b(g), a(g); })) {
    EXPECT_EQ(error.kind(), CommErrorKind::kMismatch);
    EXPECT_TRUE(error.culprits().empty()) << "one against one: no majority";
    EXPECT_NE(std::string(error.what()).find("weight) at train.cc:10"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("bias) at train.cc:10"), std::string::npos);
  }
}

// P17 and P18: a barrier that only one side reaches meets the other's next call.
TEST_P(Mismatch, ABarrierOnOneRankOnlyIsNamed) {
  const auto step = all_reduce(4);
  const auto errors = errors_of(
      2, 0, [&](ProcessGroup& g) { step(g), step(g), step(g); },
      [&](ProcessGroup& g) { step(g), barrier(kOtherSite)(g), step(g); });
  for (const CommError& error : errors) {
    EXPECT_EQ(error.kind(), CommErrorKind::kMismatch);
    EXPECT_NE(std::string(error.what()).find("rank 0: barrier #2 at train.cc:20"),
              std::string::npos);
    EXPECT_NE(std::string(error.what()).find("rank 1: all_reduce #2"), std::string::npos);
  }
}

TEST_P(Mismatch, RolesDoNotDiffer) {
  run(3, [](RankContext& rank) {
    std::vector<int> one(2), all(6), none;
    const bool at_root = rank.group.rank() == 2;
    rank.group.gather(buffer(one), at_root ? buffer(all) : buffer(none), 2)->wait();
    rank.group.scatter(at_root ? buffer(all) : buffer(none), buffer(one), 2)->wait();
    // Another type of the empty buffer means nothing.
    rank.group.gather(buffer(one), at_root ? buffer(all) : Buffer(), 2)->wait();
  });
}

TEST_P(Mismatch, AGroupIsUnusableAfterwards) {
  run(3, [](RankContext& rank) {
    const auto common = barrier(kSite), different = barrier(kOtherSite);
    comm_error_of([&] { (rank.group.rank() == 1 ? different : common)(rank.group); });
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(comm_error_of([&] { barrier()(rank.group); }).kind(), CommErrorKind::kMismatch);
    }
  });
}

TEST_P(Mismatch, SendAndRecvMustFit) {
  std::array<std::string, 2> texts;
  run(2, [&](RankContext& rank) {
    std::vector<float> four(4);
    std::vector<double> two(2);
    const CommError error = comm_error_of([&] {
      if (rank.group.rank() == 0) rank.group.send(buffer(four), 1, 0, {}, kSite)->wait();
      if (rank.group.rank() == 1) rank.group.recv(buffer(two), 0, 0, {}, kOtherSite)->wait();
    });
    EXPECT_EQ(error.kind(), CommErrorKind::kMismatch) << error.what();
    texts[static_cast<std::size_t>(rank.group.rank())] = error.what();
  });
  EXPECT_EQ(texts[0], "rank 0/2 [" + GetParam() +
                          "] send #1 (float32 [4], to 1, tag 0) at train.cc:10: does not fit rank "
                          "1's recv #1 (float64 [2], from 0, tag 0) at train.cc:20; give both the "
                          "same count, type, tag and label");
}

}  // namespace
}  // namespace ddproof::contract
