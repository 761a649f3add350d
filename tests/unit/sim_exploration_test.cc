// Proofs over the real Gloo: one run for each class of orders that can differ; checked against all
// orders where those can be counted.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/sim/sim_world.h"
#include "reference/launch/main_process_first.h"
#include "simulator/explorer.h"
#include "tests/support/every_order.h"

namespace ddproof {
namespace {

constexpr std::uint64_t kRunsMax = 20'000;

using RankBody = std::function<void(RankContext&)>;

std::string outcome_of(const sim::Report& report) {
  std::string outcome;
  for (const sim::RankReport& rank : report.ranks) {
    try {
      if (rank.error) std::rethrow_exception(rank.error);
      outcome += "ok; ";
    } catch (const std::exception& error) {
      outcome += std::string(error.what()) + "; ";
    }
  }
  return outcome;
}

SimWorldOptions options_of(int ranks, sim::Scheduler& scheduler, sim::StackPool& stacks) {
  SimWorldOptions options;
  options.world.world_size = ranks;
  options.scheduler = &scheduler;
  options.stacks = &stacks;
  return options;
}

struct Proof {
  std::set<std::string> outcomes;
  std::uint64_t runs = 0;
  std::uint64_t traces = 0;
  std::string gap;
};

Proof prove(int ranks, const RankBody& body) {
  sim::Explorer explorer;
  sim::StackPool stacks;
  SimWorldOptions options = options_of(ranks, explorer, stacks);
  options.observer = &explorer;
  Proof proof;
  do {
    proof.outcomes.insert(outcome_of(run_sim_world(options, body)));
  } while (++proof.runs < kRunsMax && explorer.advance());
  proof.traces = explorer.traces();
  proof.gap = explorer.gap();
  return proof;
}

Proof try_every_order(int ranks, const RankBody& body) {
  test::EveryOrder orders;
  sim::StackPool stacks;
  const SimWorldOptions options = options_of(ranks, orders, stacks);
  Proof proof;
  do {
    proof.outcomes.insert(outcome_of(run_sim_world(options, body)));
  } while (++proof.runs < kRunsMax && orders.advance());
  return proof;
}

void all_reduce(RankContext& rank) {
  std::array<float, 4> values{1, 2, 3, 4};
  rank.group.all_reduce(Buffer::of(std::span(values)))->wait();
  if (values[3] != 4 * static_cast<float>(rank.group.size())) throw std::runtime_error("wrong sum");
}

// Takes time in the ports, and everybody sends to everybody at once.
void exchange_much(RankContext& rank) {
  const auto ranks = static_cast<std::size_t>(rank.group.size());
  std::vector<float> mine(ranks * 1000, 1), theirs(ranks * 1000);
  rank.group
      .all_to_all(ConstBuffer::of(std::span<const float>(mine)), Buffer::of(std::span(theirs)))
      ->wait();
}

void download(RankContext& rank) { rank.runtime.files().create("data"); }

void use(RankContext& rank) {
  if (!rank.runtime.files().exists("data")) throw std::runtime_error("used before it was there");
}

void guard(RankContext& rank) {
  const GuardContext context{&rank.group, rank.group.rank()};
  main_process_first(
      context, GuardScope::kWorld, [&] { download(rank); }, [&] { use(rank); });
}

TEST(SimExploration, CollectivesLeaveNothingToTheSchedule) {
  for (const RankBody& body : {RankBody(all_reduce), RankBody(exchange_much),
                               RankBody([](RankContext& rank) { rank.group.barrier()->wait(); })}) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const Proof proof = prove(ranks, body);
      EXPECT_EQ(proof.outcomes.size(), 1u);
      EXPECT_EQ(proof.traces, 1u);
      EXPECT_EQ(proof.gap, "");
    }
  }
}

TEST(SimExploration, ProvesGuardAndAllReduceAtEightRanks) {
  const Proof proof = prove(8, [](RankContext& rank) {
    guard(rank);
    all_reduce(rank);
  });
  EXPECT_EQ(proof.outcomes, std::set<std::string>{"ok; ok; ok; ok; ok; ok; ok; ok; "});
  EXPECT_EQ(proof.traces, 1u);
  EXPECT_EQ(proof.gap, "");
}

TEST(SimExploration, FindsThatAGuardWithoutABarrierGuardsNothing) {
  const Proof proof = prove(3, [](RankContext& rank) {
    if (rank.group.rank() == 0) download(rank);
    use(rank);
  });
  EXPECT_EQ(proof.outcomes.size(), 4u);  // each of the others comes in time or not
  EXPECT_EQ(proof.gap, "");
}

struct NamedBody {
  const char* name;
  RankBody body;
};

void PrintTo(const NamedBody& program, std::ostream* out) { *out << program.name; }

class TwoRanks : public testing::TestWithParam<NamedBody> {};

TEST_P(TwoRanks, HaveTheOutcomesOfAllOrders) {
  const Proof all = try_every_order(2, GetParam().body);
  ASSERT_LT(all.runs, kRunsMax);
  const Proof proof = prove(2, GetParam().body);
  EXPECT_EQ(proof.outcomes, all.outcomes);
  EXPECT_EQ(proof.gap, "");
  EXPECT_LT(proof.runs, all.runs);
}

Buffer buffer_of(float& value) { return Buffer::of(std::span(&value, 1)); }

const NamedBody kPrograms[] = {
    {"AllReduce", all_reduce},
    {"EarlyReturn",
     [](RankContext& rank) {
       if (rank.group.rank() == 0) all_reduce(rank);
     }},
    {"Throw",
     [](RankContext& rank) {
       if (rank.group.rank() == 0) throw std::runtime_error("gives up");
       all_reduce(rank);
     }},
    {"CrossedSends",
     [](RankContext& rank) {
       float value = 1;
       const int peer = 1 - rank.group.rank();
       rank.group.send(buffer_of(value), peer)->wait();
       rank.group.recv(buffer_of(value), peer)->wait();
     }},
    {"Abort",
     [](RankContext& rank) {
       std::array<float, 4> values{};
       const WorkPtr work = rank.group.all_reduce(Buffer::of(std::span(values)));
       rank.runtime.sleep_for(Duration(0));
       if (rank.group.rank() == 0) rank.group.abort();
       work->wait();
     }},
    {"AbortWithFiles",
     [](RankContext& rank) {
       if (rank.group.rank() == 0) download(rank);
       rank.runtime.sleep_for(Duration(0));
       if (!rank.runtime.files().exists("data")) rank.group.abort();
       rank.group.barrier()->wait();
     }},
    {"Files",
     [](RankContext& rank) {
       if (rank.group.rank() == 0) download(rank);
       rank.runtime.sleep_for(Duration(0));
       use(rank);
     }},
    {"Sizes",
     [](RankContext& rank) {
       std::array<float, 2> values{1, 2};
       const std::size_t count = rank.group.rank() == 0 ? 1 : 2;
       rank.group.all_reduce(Buffer::of(std::span(values).first(count)))->wait();
     }},
};

INSTANTIATE_TEST_SUITE_P(SimExploration, TwoRanks, testing::ValuesIn(kPrograms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ddproof
