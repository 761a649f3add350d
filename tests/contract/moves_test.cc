// The operations that move data unchanged, on every type and size.
#include "tests/contract/contract.h"

namespace ddproof::contract {
namespace {

class Moves : public Contract {
 protected:
  // body(context, T{}, count, root) on every world, type and count; the root goes round.
  template <class Body>
  void for_each_case(Body&& body) const {
    for (int size : world_sizes()) {
      const auto on_each_rank = [&body](RankContext& rank) {
        int root = 0;
        for_each_type([&]<class T>(T) {
          for (std::int64_t count : counts()) {
            SCOPED_TRACE(std::string(element_of<T>().name()) + " " + std::to_string(count));
            body(rank.group, T{}, count, root);
            root = (root + 1) % rank.group.size();
          }
        });
      };
      // Without the checks of calls, which other tests cover: they would double the time.
      run(size, on_each_rank, false);
    }
  }
};
DDPROOF_CONTRACT(Moves);

// What rank `from` puts into its part for rank `to`.
template <class T>
std::vector<T> part(int from, int to, std::int64_t count) {
  std::vector<T> data;
  for (std::int64_t i = 0; i < count; ++i) {
    data.push_back(to_element<T>((i * 7 + from * 13 + to * 29) % 101));
  }
  return data;
}

template <class T>
void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

TEST_P(Moves, BroadcastGivesTheRootsData) {
  for_each_case([]<class T>(ProcessGroup& group, T, std::int64_t count, int root) {
    auto data = part<T>(group.rank(), 0, count);
    group.broadcast(buffer(data), root)->wait();
    EXPECT_EQ(data, part<T>(root, 0, count));
  });
}

TEST_P(Moves, AllGatherJoinsTheInputsInRankOrder) {
  for_each_case([]<class T>(ProcessGroup& group, T, std::int64_t count, int) {
    auto in = part<T>(group.rank(), 0, count);
    std::vector<T> out(in.size() * static_cast<std::size_t>(group.size()));
    group.all_gather(buffer(in), buffer(out))->wait();
    std::vector<T> expected;
    for (int rank = 0; rank < group.size(); ++rank) append(expected, part<T>(rank, 0, count));
    EXPECT_EQ(out, expected);
    EXPECT_EQ(in, part<T>(group.rank(), 0, count));
  });
}

TEST_P(Moves, GatherJoinsTheInputsOnTheRoot) {
  for_each_case([]<class T>(ProcessGroup& group, T, std::int64_t count, int root) {
    const bool at_root = root == group.rank();
    auto in = part<T>(group.rank(), 0, count);
    std::vector<T> out(at_root ? in.size() * static_cast<std::size_t>(group.size()) : 0);
    group.gather(buffer(in), buffer(out), root)->wait();
    std::vector<T> expected;
    for (int rank = 0; at_root && rank < group.size(); ++rank) {
      append(expected, part<T>(rank, 0, count));
    }
    EXPECT_EQ(out, expected);
  });
}

TEST_P(Moves, ScatterDealsTheRootsParts) {
  for_each_case([]<class T>(ProcessGroup& group, T, std::int64_t count, int root) {
    std::vector<T> in;
    for (int rank = 0; root == group.rank() && rank < group.size(); ++rank) {
      append(in, part<T>(root, rank, count));
    }
    std::vector<T> out(static_cast<std::size_t>(count));
    group.scatter(buffer(in), buffer(out), root)->wait();
    EXPECT_EQ(out, part<T>(root, group.rank(), count));
  });
}

TEST_P(Moves, AllToAllExchangesParts) {
  for_each_case([]<class T>(ProcessGroup& group, T, std::int64_t count, int) {
    std::vector<T> in, expected;
    for (int rank = 0; rank < group.size(); ++rank) {
      append(in, part<T>(group.rank(), rank, count));
      append(expected, part<T>(rank, group.rank(), count));
    }
    std::vector<T> out(in.size());
    group.all_to_all(buffer(in), buffer(out))->wait();
    EXPECT_EQ(out, expected);
  });
}

class PointToPoint : public PeerContract {};
DDPROOF_CONTRACT(PointToPoint);

TEST_P(PointToPoint, ARingOfSendsArrives) {
  for (int size : {2, 3, 5}) {
    run(size, [](RankContext& rank) {
      ProcessGroup& group = rank.group;
      const int next = (group.rank() + 1) % group.size();
      const int previous = (group.rank() + group.size() - 1) % group.size();
      for (std::int64_t count : counts()) {
        auto out = part<float>(group.rank(), next, count);
        std::vector<float> in(out.size());
        // Sends wait for their receivers: one rank has to receive first.
        if (group.rank() == 0) {
          group.recv(buffer(in), previous)->wait();
          group.send(buffer(out), next)->wait();
        } else {
          group.send(buffer(out), next)->wait();
          group.recv(buffer(in), previous)->wait();
        }
        EXPECT_EQ(in, part<float>(previous, group.rank(), count));
      }
    });
  }
}

TEST_P(PointToPoint, MessagesOfOneTagArriveInOrder) {
  run(2, [](RankContext& rank) {
    for (int i = 0; i < 20; ++i) {
      std::vector<int> data{rank.group.rank() == 0 ? i : -1};
      if (rank.group.rank() == 0) {
        rank.group.send(buffer(data), 1, 7)->wait();
      } else {
        rank.group.recv(buffer(data), 0, 7)->wait();
        EXPECT_EQ(data[0], i);
      }
    }
  });
}

TEST_P(PointToPoint, OtherRanksMayGoOn) {
  run(4, [](RankContext& rank) {
    std::vector<int> data{rank.group.rank()};
    if (rank.group.rank() == 1) rank.group.send(buffer(data), 3)->wait();
    if (rank.group.rank() == 3) {
      rank.group.recv(buffer(data), 1)->wait();
      EXPECT_EQ(data[0], 1);
    }
    rank.group.barrier()->wait();
  });
}

}  // namespace
}  // namespace ddproof::contract
