// The facts of sharded streams, and the bugs of public reports planted in a shard.
#include <gtest/gtest.h>

#include "properties/stream_properties.h"
#include "tests/property/property_test.h"

namespace ddproof {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(StreamPartition, HoldsForTheReference) {
  OsRuntime runtime;
  const PropertyResult result = stream_partition(property_options(runtime, 1000), runtime);
  expect_holds(result);
  for (const char* name : {"more ranks than samples", "many workers", "known length",
                           "unknown length", "tail to pad", "tail to drop", "tail to keep"}) {
    EXPECT_GT(result.classes.at(name), result.cases / 8) << name;
  }
}

void expect_mutant_found(const DrawStreamShard& mutant, const std::string& shrunk) {
  OsRuntime runtime;
  expect_found(stream_partition(property_options(runtime, 200), runtime, mutant), shrunk);
}

// P15, datasets#5360.
TEST(StreamPartition, FindsAStreamThatEveryRankReadsWhole) {
  expect_mutant_found(
      [](StreamCase drawn, int, int worker) {
        drawn.shard.replicas = 1;
        return draw_reference_stream_shard(drawn, 0, worker);
      },
      "length=1 known=false replicas=2 workers=1 tail=keep\n  union: a sample comes out twice");
}

TEST(StreamPartition, FindsAStreamThatEveryWorkerReadsWhole) {
  expect_mutant_found(
      [](StreamCase drawn, int rank, int) {
        drawn.shard.workers = 1;
        return draw_reference_stream_shard(drawn, rank, 0);
      },
      "workers=2");
}

// P15, lhotse PR#695: the remainder is cut although it should be kept.
TEST(StreamPartition, FindsATailThatIsCut) {
  expect_mutant_found(
      [](StreamCase drawn, int rank, int worker) {
        drawn.shard.tail = Tail::kDrop;
        return draw_reference_stream_shard(drawn, rank, worker);
      },
      "length=1 known=false replicas=2 workers=1 tail=keep\n  union: 1 samples never come out");
}

// Blocks of a round instead of turns: a rank's order then depends on its workers.
TEST(StreamPartition, FindsWorkersThatTakeTurnsBeforeRanks) {
  expect_mutant_found(
      [](StreamCase drawn, int rank, int worker) {
        const int place = rank * drawn.shard.workers + worker;
        drawn.shard.replicas *= drawn.shard.workers;
        drawn.shard.workers = 1;
        return draw_reference_stream_shard(drawn, place, 0);
      },
      "workers=2");
}

}  // namespace
}  // namespace ddproof
