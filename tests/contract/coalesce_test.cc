// Calls that are submitted together.
#include <stdexcept>

#include "tests/contract/contract.h"
#include "tests/support/refusal.h"

namespace ddproof::contract {
namespace {

class Coalesce : public Contract {};
DDPROOF_CONTRACT(Coalesce);

class CoalesceWithPeers : public PeerContract {};
DDPROOF_CONTRACT(CoalesceWithPeers);

TEST_P(Coalesce, GivesWhatTheCallsGiveAlone) {
  for (int size : world_sizes()) {
    run(size, [size](RankContext& rank) {
      for (int round = 0; round < 3; ++round) {
        const int root = round % size;
        std::vector<int> sum{rank.group.rank() + round}, rooted{rank.group.rank()}, nothing;
        std::vector<double> mine{rank.group.rank() * 0.5}, all(static_cast<std::size_t>(size));
        std::vector<WorkPtr> works;
        rank.group.coalesce([&] {
          works.push_back(rank.group.all_reduce(buffer(sum)));
          works.push_back(rank.group.all_reduce(buffer(nothing)));
          works.push_back(rank.group.broadcast(buffer(rooted), root));
          works.push_back(rank.group.all_gather(buffer(mine), buffer(all)));
        });
        for (std::size_t i = works.size(); i-- > 0;) {
          works[i]->wait();
          EXPECT_TRUE(works[i]->is_completed());
          EXPECT_EQ(works[i]->error(), nullptr);
        }
        EXPECT_EQ(sum[0], size * (size - 1) / 2 + size * round);
        EXPECT_EQ(rooted[0], root);
        for (int of = 0; of < size; ++of) EXPECT_EQ(all[static_cast<std::size_t>(of)], of * 0.5);
      }
      rank.group.coalesce([] {});
      rank.group.barrier()->wait();
    });
  }
}

TEST_P(Coalesce, WhatDoesNotFitInsideIsRefused) {
  run(1, [](RankContext& rank) {
    std::vector<int> data{1};
    ProcessGroup& group = rank.group;
    group.coalesce([&] {
      const WorkPtr work = group.all_reduce(buffer(data));
      EXPECT_FALSE(work->is_completed());
      EXPECT_NE(refusal_of([&] { work->wait(); }).find("waited for within coalesce()"),
                std::string::npos);
    });
    EXPECT_NE(refusal_of([&] {
                group.coalesce([&] { group.barrier(); });
              }).find("a barrier within coalesce()"),
              std::string::npos);
    EXPECT_NE(refusal_of([&] {
                group.coalesce([&] { group.coalesce([] {}); });
              }).find("coalesce within coalesce"),
              std::string::npos);
    group.barrier()->wait();
  });
}

TEST_P(Coalesce, WhenItsCallsThrowNoneIsMade) {
  run(world_sizes().back(), [](RankContext& rank) {
    std::vector<int> data{1};
    const auto broken = [&] {
      rank.group.all_reduce(buffer(data));
      throw std::runtime_error("changed its mind");
    };
    EXPECT_THROW(rank.group.coalesce(broken), std::runtime_error);
    rank.group.barrier()->wait();
    EXPECT_EQ(data[0], 1);
    // As if it had not been there: the barrier was the first call.
    const std::string text = refusal_of([&] { rank.group.broadcast(buffer(data), -1); });
    EXPECT_NE(text.find("broadcast #2"), std::string::npos) << text;
  });
}

TEST_P(CoalesceWithPeers, MessagesGoBothWays) {
  run(2, [](RankContext& rank) {
    const int me = rank.group.rank();
    std::vector<int> out{me + 1}, in{0};
    WorkPtr sent, received;
    rank.group.coalesce([&] {
      if (me == 0) sent = rank.group.send(buffer(out), 1);
      received = rank.group.recv(buffer(in), 1 - me);
      if (me == 1) sent = rank.group.send(buffer(out), 0);
    });
    received->wait();
    sent->wait();
    EXPECT_EQ(in[0], 2 - me);
  });
}

TEST_P(CoalesceWithPeers, ADifferenceIsNoticedBeforeAnyDataMove) {
  run(2, [](RankContext& rank) {
    std::vector<int> first{1}, second{1, 2};
    WorkPtr works[2];
    rank.group.coalesce([&] {
      works[0] = rank.group.all_reduce(buffer(first));
      works[1] = rank.group.all_reduce(buffer(second),
                                       rank.group.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax);
    });
    for (const WorkPtr& work : works) {
      EXPECT_EQ(comm_error_of([&] { work->wait(); }).kind(), CommErrorKind::kMismatch);
    }
    EXPECT_EQ(first[0], 1);
    const auto next = comm_error_of([&] { rank.group.barrier()->wait(); });
    EXPECT_EQ(next.kind(), CommErrorKind::kMismatch);
  });
}

}  // namespace
}  // namespace ddproof::contract
