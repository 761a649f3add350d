// Channels are found by the rank at their other end.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "backends/sim/routes.h"

namespace ddproof {
namespace {

TEST(SimRoutes, FindEveryChannelOfManyAndNoOther) {
  constexpr int kPeers = 4096;
  std::deque<Channel> channels(kPeers);
  Routes routes;
  EXPECT_EQ(routes.find(0), nullptr);
  for (int i = 0; i < kPeers; ++i) {  // every third rank, from the last to the first
    const int peer = 3 * (kPeers - 1 - i);
    EXPECT_EQ(routes.find(peer), nullptr) << peer;
    routes.add(peer, channels[static_cast<std::size_t>(i)]);
  }
  for (int peer = 0; peer < 3 * kPeers; ++peer) {
    Channel* const expected =
        peer % 3 == 0 ? &channels[static_cast<std::size_t>(kPeers - 1 - peer / 3)] : nullptr;
    ASSERT_EQ(routes.find(peer), expected) << peer;
  }
}

TEST(SimRoutes, AreListedByRankHoweverTheyWereAdded) {
  std::deque<Channel> channels(4);
  Routes routes;
  EXPECT_TRUE(routes.in_order().empty());
  routes.add(700, channels[3]);
  routes.add(0, channels[0]);
  routes.add(65, channels[2]);
  routes.add(64, channels[1]);
  EXPECT_EQ(routes.in_order(),
            (std::vector<Channel*>{&channels[0], &channels[1], &channels[2], &channels[3]}));
}

}  // namespace
}  // namespace ddproof
