// Faults under Gloo's collectives on simulated ranks: the numbers are right or the error is clear,
// and nothing hangs, ends the process or is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/api/error.h"
#include "backends/sim/sim_world.h"
#include "simulator/draw_faults.h"

namespace ddproof {
namespace {

using Values = std::vector<float>;

Buffer whole(Values& values) { return Buffer::of(std::span(values)); }
ConstBuffer input(Values& values) { return ConstBuffer(whole(values)); }

// What rank r has before a call: r + 1 in every place, for sums that are exact.
Values ones(int rank, std::size_t count) { return Values(count, static_cast<float>(rank + 1)); }

// True when everybody's part of `values` is `expected(rank)`.
template <class Expected>
bool parts_are(const Values& values, int ranks, Expected&& expected) {
  const std::size_t part = values.size() / static_cast<std::size_t>(ranks);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<float>(expected(static_cast<int>(i / part)))) return false;
  }
  return true;
}

// Calls every collective; false when a result was wrong.
bool reductions_are_right(ProcessGroup& group) {
  const int n = group.size(), me = group.rank();
  const float sum = static_cast<float>(n * (n + 1)) / 2;
  Values a = ones(me, 37);
  group.all_reduce(whole(a))->wait();
  Values b = ones(me, 20);
  group.reduce(whole(b), n - 1)->wait();
  Values in = ones(me, 3 * n), c(3);
  group.reduce_scatter(input(in), whole(c))->wait();
  return a == Values(37, sum) && (me != n - 1 || b == Values(20, sum)) && c == Values(3, sum);
}

bool moves_are_right(ProcessGroup& group) {
  const int n = group.size(), me = group.rank();
  const auto count = static_cast<std::size_t>(n);
  Values a = ones(me, 9), b = ones(me, 5), all(5 * count), none;
  group.broadcast(whole(a), 0)->wait();
  group.all_gather(input(b), whole(all))->wait();
  bool right = a == ones(0, 9) && parts_are(all, n, [](int part) { return part + 1; });
  Values at_root(me == 0 ? 5 * count : 0);
  group.gather(input(b), whole(at_root), 0)->wait();
  right = right && parts_are(at_root, n, [](int part) { return part + 1; });
  Values mine(5);
  group.scatter(me == 0 ? input(at_root) : input(none), whole(mine), 0)->wait();
  right = right && mine == ones(me, 5);
  Values out(2 * count), in = ones(me, 2 * count);
  group.all_to_all(input(in), whole(out))->wait();
  return right && parts_are(out, n, [](int part) { return part + 1; });
}

bool messages_are_right(ProcessGroup& group) {
  const int n = group.size(), me = group.rank();
  Values out = ones(me, 4), in(4);
  const auto receive = [&] { group.recv(whole(in), (me + n - 1) % n, 3)->wait(); };
  if (me == 0) receive();  // all sending first would be a circle
  group.send(input(out), (me + 1) % n, 3)->wait();
  if (me != 0) receive();
  group.barrier()->wait();
  group.monitored_barrier()->wait();
  return in == ones((me + n - 1) % n, 4);
}

void save(FileSystem& files) {
  const std::vector<std::byte> bytes(100, std::byte{7});
  const auto file = files.create("/new");
  file->append(bytes);
  file->append(bytes);
  file->sync();
  files.rename("/new", "/saved");
  files.sync_directory("/");
}

struct Outcome {
  sim::Report report;
  bool right = true;
};

Outcome run_under(int ranks, std::uint64_t seed, const sim::FaultPlan& plan) {
  SimWorldOptions options;
  options.world.world_size = ranks;
  options.world.seed = seed;
  options.faults = plan;
  options.event_count_max = 1'000'000;
  Outcome outcome;
  outcome.report = run_sim_world(options, [&](RankContext& rank) {
    for (int step = 0; step < 2; ++step) {
      rank.runtime.charge(std::chrono::microseconds(20));
      // Every call whatever came before: a rank that saw a flipped bit must not leave the others.
      for (const auto& are_right : {reductions_are_right, moves_are_right, messages_are_right}) {
        if (!are_right(rank.group)) outcome.right = false;
      }
      if (rank.group.rank() == 0) save(rank.runtime.files());
      rank.runtime.wall_clock();
    }
  });
  return outcome;
}

// "returned", "crashed", "hung", "stopped" beside a deadlock, or the kind of error; "UNCLEAR ..."
// for what no user should see.
std::string name_of(const sim::RankReport& rank, sim::Verdict verdict) {
  if (rank.outcome == sim::RankOutcome::kCrashed) return "crashed";
  if (rank.outcome == sim::RankOutcome::kHung) return "hung";
  if (!rank.error) {
    if (rank.outcome == sim::RankOutcome::kReturned) return "returned";
    return verdict == sim::Verdict::kDeadlock ? "stopped" : "UNCLEAR: stopped";
  }
  try {
    std::rethrow_exception(rank.error);
  } catch (const CommError& error) {
    const bool clear = std::string(error.what()).find("rank ") != std::string::npos;
    return clear ? to_string(error.kind()) : std::string("UNCLEAR ") + error.what();
  } catch (const DataError&) {
    return "data error";
  } catch (const std::exception& error) {
    return std::string("UNCLEAR ") + error.what();
  }
}

std::string names_of(const sim::Report& report) {
  std::string names;
  for (const sim::RankReport& rank : report.ranks) {
    names += (names.empty() ? "" : ", ") + name_of(rank, report.verdict);
  }
  return names;
}

bool has_fired(const sim::Report& report, sim::FaultKind kind) {
  return std::ranges::any_of(report.faults_fired,
                             [kind](const sim::Fault& fault) { return fault.kind == kind; });
}

// Faults that slow a run down and change nothing else.
bool is_harmless(sim::FaultKind kind) {
  switch (kind) {
    case sim::FaultKind::kSlow:
    case sim::FaultKind::kDelay:
    case sim::FaultKind::kDuplicate:
    case sim::FaultKind::kReorder:
    case sim::FaultKind::kClockJump: return true;
    default: return false;
  }
}

TEST(SimFault, EachKindHasItsEffectOnCollectives) {
  const std::map<std::string, std::string> kEffects = {
      {"crash rank=1 operation=3", "peer lost, crashed, peer lost"},
      {"hang rank=1 operation=3", "deadlock, hung, deadlock"},
      {"slow rank=1 factor=5 delay=7us", "returned, returned, returned"},
      {"delay from=0 to=1 message=2 time=1s", "returned, returned, returned"},
      {"drop from=0 to=1 message=2", "deadlock, deadlock, deadlock"},
      {"duplicate from=0 to=1 message=2", "returned, returned, returned"},
      {"reorder from=0 to=1 message=2 time=1ms", "returned, returned, returned"},
      {"truncate from=0 to=1 message=2 bytes=1", "mismatch, mismatch, mismatch"},
      {"partition ranks=0,2 start=25us end=1s", "returned, returned, returned"},
      {"partition ranks=0,2 start=25us end=never", "deadlock, deadlock, deadlock"},
      {"short-write rank=0 write=2 bytes=1", "data error, peer lost, peer lost"},
      {"full-disk rank=0 write=2", "data error, peer lost, peer lost"},
      {"failed-sync rank=0 sync=1", "data error, peer lost, peer lost"},
      {"power-cut rank=0 change=3 seed=1", "crashed, crashed, crashed"},
      {"clock-jump rank=0 start=1us by=-1s", "returned, returned, returned"},
  };
  for (const auto& [text, effect] : kEffects) {
    const Outcome outcome = run_under(3, 1, {sim::parse_fault(text)});
    EXPECT_EQ(names_of(outcome.report), effect) << text;
    EXPECT_TRUE(outcome.right) << text;
    EXPECT_EQ(sim::to_string(outcome.report.faults_fired), text);
    EXPECT_EQ(outcome.report.abandoned, 0u) << text;
  }
}

TEST(SimFault, AFlippedBitShowsAsAWrongNumber) {
  const Outcome outcome =
      run_under(3, 1, sim::parse_fault_plan("flip from=0 to=1 message=1 bit=5"));
  EXPECT_EQ(names_of(outcome.report), "returned, returned, returned");
  EXPECT_FALSE(outcome.right);
}

void expect_a_clear_end(const Outcome& outcome, const sim::FaultPlan& plan) {
  const std::string names = names_of(outcome.report);
  EXPECT_EQ(names.find("UNCLEAR"), std::string::npos) << names << " under " << to_string(plan);
  EXPECT_NE(outcome.report.verdict, sim::Verdict::kEventLimit) << to_string(plan);
  EXPECT_EQ(outcome.report.abandoned, 0u) << to_string(plan);
  // Flipped numbers are wrong numbers, and in a monitored barrier they name ranks as missing.
  if (has_fired(outcome.report, sim::FaultKind::kFlip)) return;
  EXPECT_TRUE(outcome.right) << to_string(plan);
  const bool harmless =
      std::ranges::all_of(outcome.report.faults_fired, [](const sim::Fault& fault) {
        const bool heals = fault.kind == sim::FaultKind::kPartition && fault.end != sim::kNever;
        return heals || is_harmless(fault.kind);
      });
  if (!harmless) return;
  for (const sim::RankReport& rank : outcome.report.ranks) {
    EXPECT_EQ(name_of(rank, outcome.report.verdict), "returned") << to_string(plan);
  }
}

TEST(SimFault, DrawnFaultsEndEveryRunWithTheRightNumbersOrAClearError) {
  std::map<std::string, int> ends;
  std::set<sim::FaultKind> fired;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 4);
    sim::FaultShape shape{.ranks = ranks,
                          .operations = 25,
                          .messages = 25,
                          .message_bytes = 100,
                          .duration = 200'000};
    for (const sim::RankReport& rank : run_under(ranks, seed, {}).report.ranks) {
      shape.disk.push_back(rank.disk);
    }
    const sim::FaultPlan plan = sim::draw_faults(seed, shape);
    const Outcome outcome = run_under(ranks, seed, plan);
    expect_a_clear_end(outcome, plan);
    EXPECT_EQ(run_under(ranks, seed, plan).report.digest, outcome.report.digest) << seed;
    for (const sim::RankReport& rank : outcome.report.ranks)
      ++ends[name_of(rank, outcome.report.verdict)];
    for (const sim::Fault& fault : outcome.report.faults_fired) fired.insert(fault.kind);
  }
  for (const auto& [name, count] : ends) std::printf("%-10s %d ranks\n", name.c_str(), count);
  EXPECT_EQ(fired.size(), static_cast<std::size_t>(sim::kFaultKindCount));
}

}  // namespace
}  // namespace ddproof
