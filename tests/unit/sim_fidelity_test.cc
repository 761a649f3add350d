// Collectives as one event against the same ones message by message: equal bytes, equal times,
// equal counts.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/sim_collectives.h"

namespace ddproof {
namespace {

// What a rank can tell: what it got, and when.
struct Seen {
  std::vector<Values> results;
  std::vector<sim::Time> times;
};

struct FidelityOutcome {
  std::vector<Seen> ranks;
  sim::Report report;
};

using Program = std::function<void(RankContext&, Seen&)>;

FidelityOutcome run(SimWorldOptions options, Fidelity fidelity, const Program& program) {
  options.fidelity = fidelity;
  FidelityOutcome outcome;
  outcome.ranks.resize(static_cast<std::size_t>(options.world.world_size));
  outcome.report = run_sim_world(options, [&](RankContext& rank) {
    program(rank, outcome.ranks[static_cast<std::size_t>(rank.group.rank())]);
  });
  return outcome;
}

void expect_same_bits(const Values& a, const Values& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  if (a.empty()) return;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]), 0) << what;
}

// Returns how many fewer events the whole collectives took.
std::uint64_t expect_same(const SimWorldOptions& options, const Program& program,
                          const std::string& what) {
  const FidelityOutcome messages = run(options, Fidelity::kMessages, program);
  const FidelityOutcome whole = run(options, Fidelity::kWhole, program);
  rethrow(messages.report);
  rethrow(whole.report);
  EXPECT_EQ(messages.report.virtual_time, whole.report.virtual_time) << what;
  for (std::size_t rank = 0; rank < messages.ranks.size(); ++rank) {
    const std::string who = what + ", rank " + std::to_string(rank);
    const Seen& a = messages.ranks[rank];
    const Seen& b = whole.ranks[rank];
    EXPECT_EQ(a.times, b.times) << who;
    EXPECT_EQ(a.results.size(), b.results.size()) << who;
    for (std::size_t i = 0; i < a.results.size(); ++i) {
      expect_same_bits(a.results[i], b.results[i], who + ", call " + std::to_string(i));
    }
    const sim::RankReport& x = messages.report.ranks[rank];
    const sim::RankReport& y = whole.report.ranks[rank];
    EXPECT_EQ(x.messages_sent, y.messages_sent) << who;
    EXPECT_EQ(x.bytes_sent, y.bytes_sent) << who;
    EXPECT_EQ(x.messages_received, y.messages_received) << who;
    EXPECT_EQ(x.bytes_received, y.bytes_received) << who;
  }
  return messages.report.events - std::min(messages.report.events, whole.report.events);
}

SimWorldOptions options_of(int ranks, int ranks_per_node = 0) {
  SimWorldOptions options;
  options.world.world_size = ranks;
  if (ranks_per_node > 0) options.world.placement = place_in_blocks(ranks, ranks_per_node);
  options.same_node = {2'000, 4'000'000'000};
  options.across_nodes = {7'000, 900'000'000};
  return options;
}

Program repeat(int times, Op op, std::size_t count, int root = 0) {
  return [=](RankContext& rank, Seen& seen) {
    for (int i = 0; i < times; ++i) {
      seen.results.push_back(call(rank, op, input_of(rank.group.rank() + i, count), root));
      seen.times.push_back(rank.runtime.now().count());
    }
  };
}

// The first call is measured, the second known.
Program twice(Op op, std::size_t count, int root = 0) { return repeat(2, op, count, root); }

std::string name_of(Op op, int ranks, std::size_t count) {
  return std::string(to_string(op)) + " of " + std::to_string(ranks) + ", " +
         std::to_string(count) + " elements";
}

TEST(SimFidelity, EveryCollectiveIsTheSameAsItsMessages) {
  for (int ranks = 1; ranks <= 20; ++ranks) {
    for (const Op op : kCollectives) {
      for (const std::size_t count : {0, 1, 7, 97, 400}) {
        expect_same(options_of(ranks, 4), twice(op, count, ranks / 2), name_of(op, ranks, count));
      }
    }
  }
}

TEST(SimFidelity, AllReducesAreTheSameAtEveryWorldSize) {
  for (const auto algorithm : {AllReduceAlgorithm::kRing, AllReduceAlgorithm::kBcube}) {
    for (int ranks = 1; ranks <= 128; ++ranks) {
      SimWorldOptions options = options_of(ranks, ranks % 3 == 0 ? 8 : 0);
      options.all_reduce = algorithm;
      const std::size_t count = ranks % 2 == 0 ? 8 * static_cast<std::size_t>(ranks) : 97;
      const std::uint64_t saved = expect_same(options, repeat(1, Op::kAllReduce, count),
                                              name_of(Op::kAllReduce, ranks, count));
      EXPECT_TRUE(ranks <= 3 || saved > 0) << ranks;
    }
  }
}

TEST(SimFidelity, ReducesAndMonitoredBarriersAreTheSameAtEveryWorldSize) {
  for (int ranks = 1; ranks <= 128; ++ranks) {
    const SimWorldOptions options = options_of(ranks, ranks % 3 == 0 ? 8 : 0);
    const std::size_t count = ranks % 2 == 0 ? 8 * static_cast<std::size_t>(ranks) : 97;
    for (const Op op : {Op::kReduce, Op::kMonitoredBarrier}) {
      const std::uint64_t saved =
          expect_same(options, repeat(1, op, count, ranks / 3), name_of(op, ranks, count));
      EXPECT_TRUE(ranks <= 3 || saved > 0) << ranks;
    }
  }
}

// Three segments to a chunk, of which Gloo sends one in vain.
TEST(SimFidelity, ReducesOfManySegmentsAreTheSame) {
  const auto program = [](RankContext& rank, Seen& seen) {
    seen.results.push_back(
        call(rank, Op::kReduce, input_of(rank.group.rank(), 1'500'001), 1, ReduceOp::kAverage));
    seen.times.push_back(rank.runtime.now().count());
  };
  EXPECT_GT(expect_same(options_of(2), program, "a large average"), 0u);
}

TEST(SimFidelity, OtherCollectivesAreTheSameAtManyWorldSizes) {
  for (const int ranks : {23, 32, 33, 48, 64, 97, 128}) {
    for (const Op op : {Op::kBarrier, Op::kBroadcast, Op::kAllGather, Op::kReduceScatter,
                        Op::kGather, Op::kScatter, Op::kAllToAll}) {
      expect_same(options_of(ranks, 8), twice(op, 33, 1), name_of(op, ranks, 33));
    }
  }
}

TEST(SimFidelity, SeveralSegmentsAndAveragesAreTheSame) {
  for (const auto algorithm : {AllReduceAlgorithm::kRing, AllReduceAlgorithm::kBcube}) {
    SimWorldOptions options = options_of(3);
    options.all_reduce = algorithm;
    const auto program = [](RankContext& rank, Seen& seen) {
      for (const Op op : {Op::kAllReduce, Op::kReduceScatter}) {
        seen.results.push_back(
            call(rank, op, input_of(rank.group.rank(), 1'100'001), 0, ReduceOp::kAverage));
        seen.times.push_back(rank.runtime.now().count());
      }
    };
    expect_same(options, program, "large averages");
  }
}

// Ranks that come at different times, broken off groups, messages to and fro, in any order.
TEST(SimFidelity, ProgramsAreTheSameWhateverTheirRanksDoInBetween) {
  for (int seed = 0; seed < 40; ++seed) {
    const int ranks = 2 + seed % 7;
    const auto program = [&](RankContext& rank, Seen& seen) {
      sim::SplitMix64 shared(static_cast<std::uint64_t>(seed));  // the same on all ranks
      const int place = rank.group.rank();
      const auto half = rank.group.split(place % 2, place);
      for (int step = 0; step < 12; ++step) {
        const Op op = kCollectives[sim::below(shared.next(), kCollectives.size())];
        const std::size_t count = 1 + sim::below(shared.next(), 600);
        const bool in_halves = sim::below(shared.next(), 4) == 0;
        if (sim::below(shared.next(), 2) == 0) {
          rank.runtime.charge(Duration(sim::below(rank.runtime.random_u64(), 3) * 5'000));
        }
        RankContext here{in_halves ? *half : rank.group, rank.runtime};
        seen.results.push_back(call(here, op, input_of(place + step, count)));
        seen.times.push_back(rank.runtime.now().count());
      }
    };
    expect_same(options_of(ranks, 3), program, "seed " + std::to_string(seed));
  }
}

TEST(SimFidelity, AFailureIsTheSame) {
  const std::vector<Program> programs = {
      [](RankContext& rank, Seen&) {  // one never comes
        if (rank.group.rank() != 2) rank.group.barrier()->wait();
      },
      [](RankContext& rank, Seen&) {  // one throws instead
        if (rank.group.rank() == 1) throw std::runtime_error("no data");
        rank.group.barrier()->wait();
      },
      [](RankContext& rank, Seen&) {  // sizes differ
        Values data(rank.group.rank() == 3 ? 8 : 4);
        rank.group.all_reduce(Buffer::of(data))->wait();
      },
      [](RankContext& rank, Seen&) {  // some would wait too long
        Values data(100'000);
        rank.group
            .all_reduce(Buffer::of(data), ReduceOp::kSum, {.timeout = std::chrono::microseconds(1)})
            ->wait();
      }};
  for (const Program& program : programs) {
    sim::RoundRobin in_order;
    SimWorldOptions options = options_of(4);
    options.scheduler = &in_order;
    const FidelityOutcome messages = run(options, Fidelity::kMessages, program);
    const FidelityOutcome whole = run(options, Fidelity::kWhole, program);
    EXPECT_EQ(messages.report.verdict_text, whole.report.verdict_text);
    EXPECT_EQ(messages.report.virtual_time, whole.report.virtual_time);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(messages.report.ranks[rank].outcome, whole.report.ranks[rank].outcome);
    }
  }
}

TEST(SimFidelity, ARankThatLeavesEndsTheWholeCallOfTheOthers) {
  const FidelityOutcome outcome =
      run(options_of(4), Fidelity::kWhole, [](RankContext& rank, Seen&) {
        Values data(100'000);
        const WorkPtr work = rank.group.all_reduce(Buffer::of(data));
        if (rank.group.rank() == 2) {
          rank.runtime.sleep_for(std::chrono::microseconds(10));
          throw std::runtime_error("gone");
        }
        work->wait();
      });
  for (const int rank : {0, 1, 3}) {
    try {
      std::rethrow_exception(outcome.report.ranks[static_cast<std::size_t>(rank)].error);
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommErrorKind::kPeerLost);
      EXPECT_EQ(error.culprits(), std::vector<int>{2});
    }
  }
}

TEST(SimFidelity, TwoGroupsAtOnceAreRefused) {
  const FidelityOutcome outcome =
      run(options_of(4), Fidelity::kWhole, [](RankContext& rank, Seen&) {
        const auto other = rank.group.split(0, 0);
        Values data(100'000), more(4);
        const WorkPtr work = rank.group.all_reduce(Buffer::of(data));
        rank.runtime.sleep_for(std::chrono::microseconds(10));
        other->all_reduce(Buffer::of(more))->wait();
        work->wait();
      });
  try {
    rethrow(outcome.report);
    FAIL();
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("simulate this program message by message"),
              std::string::npos)
        << error.what();
  }
}

TEST(SimFidelity, HoldsWithEveryPayload) {
  SimWorldOptions options = options_of(6);
  options.payload = PayloadMode::kHashed;
  expect_same(options, twice(Op::kAllReduce, 600), "hashed");
  options.payload = PayloadMode::kSizeOnly;
  expect_same(options, twice(Op::kAllReduce, 600), "size-only");
}

}  // namespace
}  // namespace ddproof
