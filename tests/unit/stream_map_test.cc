// Which streams of which workers --redirects, --tee and --local-ranks-filter mean.
#include "reference/launch/stream_map.h"

#include <gtest/gtest.h>

#include "tests/support/refusal.h"

namespace ddproof {
namespace {

TEST(StreamMap, OneNumberIsForAllWorkers) {
  for (const int streams : {0, 1, 2, 3}) {
    const StreamMap map("--tee", std::to_string(streams), 3);
    EXPECT_EQ(map.is_empty(), streams == 0);
    for (const int rank : {0, 1, 2}) {
      EXPECT_EQ(map.has(rank, Stream::kOut), streams % 2 == 1) << streams;
      EXPECT_EQ(map.has(rank, Stream::kErr), streams >= 2) << streams;
    }
  }
  EXPECT_TRUE(StreamMap().is_empty());
  EXPECT_FALSE(StreamMap().has(5, Stream::kOut));
}

TEST(StreamMap, LocalRanksMayHaveSeveralDigits) {
  const StreamMap map("--tee", "0:1,12:3", 16);
  EXPECT_TRUE(map.has(0, Stream::kOut));
  EXPECT_FALSE(map.has(0, Stream::kErr));
  EXPECT_TRUE(map.has(12, Stream::kErr));
  EXPECT_FALSE(map.has(1, Stream::kOut));
  EXPECT_FALSE(map.has(15, Stream::kErr));
}

TEST(StreamMap, WhatIsNoMapIsRefusedByName) {
  EXPECT_EQ(
      refusal_of([] { StreamMap("--redirects", "0:4", 2); }),
      "--redirects is \"0:4\"; allowed: 0 (none), 1 (standard output), 2 (standard error) or "
      "3 (both), for all workers, or by local rank, as 0:1,1:3, with local ranks 0 to 1, each "
      "once");
  for (const char* text : {"", "4", "-1", "00x", "0:", ":1", "2:1", "0:1,0:1", "0:1,", "0:1;1:1",
                           "1,2", "99999999999", "0:99999999999", " 1"}) {
    EXPECT_TRUE(refusal_of([&] { StreamMap("--tee", text, 2); }).starts_with("--tee is \""))
        << text;
  }
}

TEST(StreamMap, LocalRanksOfAFilterAreCheckedToo) {
  EXPECT_EQ(parse_local_ranks("--local-ranks-filter", "10,0", 11), (std::vector<int>{0, 10}));
  EXPECT_EQ(
      refusal_of([] { parse_local_ranks("--local-ranks-filter", "0,1", 1); }),
      "--local-ranks-filter is \"0,1\"; allowed: local rank 0, with commas between them, each "
      "once");
  for (const char* text : {"", ",", "0,", "0,0", "a", "-1", "0 1"}) {
    EXPECT_NE(refusal_of([&] { parse_local_ranks("--x", text, 2); }), "not refused") << text;
  }
}

}  // namespace
}  // namespace ddproof
