// Verdicts of simulated worlds against exhaustive search, on generated programs of checked calls
// over the real Gloo: deadlock, mismatch (also of groups), lost rank or none, who is stuck and who
// is to blame.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/registry/simulated_world.h"
#include "properties/scenario/judge.h"
#include "tests/support/rendezvous.h"
#include "tests/support/rendezvous_search.h"

namespace ddproof {
namespace {

using scenario::Outcome;
using test::Do;
using test::has_rank;
using test::MeetProgram;
using test::MeetSearch;
using test::MeetState;
using test::MeetStep;
using test::RankMask;

// A rank that fails ends at once, whatever it still has under way; which of that its peers still
// see done is a matter of time. So in programs with asynchronous calls nothing fails.
void leave_out_failures_of_async(MeetProgram& program) {
  bool has_async = false;
  for (const auto& steps : program.ranks) {
    for (const MeetStep& step : steps) has_async = has_async || step.is_async;
  }
  for (auto& steps : program.ranks) {
    for (MeetStep& step : steps) {
      if (!has_async) continue;
      step.content = 0;
      if (step.what == Do::kCrash) step.what = Do::kExit;
    }
  }
}

// One rank's way through a program.
class MeetRank {
 public:
  MeetRank(const MeetProgram& program, RankContext& rank)
      : program_(program), rank_(rank), number_(rank.group.rank()) {}

  void run() {
    join_groups();
    for (const MeetStep& step : program_.ranks[static_cast<std::size_t>(number_)]) {
      if (test::is_queued(step)) {
        call(step);
        continue;
      }
      if (step.what == Do::kSleep) {
        rank_.runtime.sleep_for(Duration(1'000));
        continue;
      }
      while (step.what == Do::kSpin) rank_.runtime.sleep_for(Duration(1'000));
      wait();
      if (step.what == Do::kExit) return stay();
      if (step.what == Do::kCrash) meet_fate(rank_.runtime, sim::RankFate::kCrashes);
      if (step.what == Do::kHang) meet_fate(rank_.runtime, sim::RankFate::kHangs);
    }
    wait();
    stay();
  }

 private:
  // The parts of the world would be closed at the end of the program, and who still waits for this
  // rank would lose it.
  void stay() {
    const std::unique_ptr<Monitor> monitor = rank_.runtime.make_monitor();
    const MonitorLock lock(*monitor);
    while (true) monitor->wait(kForever, {.what = "the end", .idle = true, .is_local = true});
  }

  void join_groups() {
    for (std::size_t i = 1; i < groups_.size(); ++i) {
      groups_[i] = rank_.group.split(has_rank(program_.groups[i], number_) ? 0 : -1, 0);
    }
  }

  // The three groups make three different calls.
  WorkPtr submit(const MeetStep& step) {
    data_.push_back(std::make_unique<std::array<float, 2>>());
    const auto count = static_cast<std::size_t>(1 + step.content);
    const Buffer data = Buffer::of(std::span(*data_.back()).first(count));
    const auto tag = static_cast<std::uint32_t>(step.tag);
    if (step.what == Do::kSend) return rank_.group.send(data, step.peer, tag);
    if (step.what == Do::kReceive) return rank_.group.recv(data, step.peer, tag);
    if (step.group == 0) return rank_.group.all_reduce(data);
    ProcessGroup& group = *groups_[static_cast<std::size_t>(step.group)];
    return step.group == 1 ? group.barrier({.label = step.content == 0 ? "" : "other"})
                           : group.broadcast(data, step.content);
  }

  void call(const MeetStep& step) {
    const WorkPtr work = submit(step);
    if (step.is_async) {
      works_.push_back(work);
    } else {
      work->wait();
    }
  }

  void wait() {
    for (const WorkPtr& work : works_) work->wait();
  }

  const MeetProgram& program_;
  RankContext& rank_;
  int number_;
  std::array<std::unique_ptr<ProcessGroup>, test::kGroupsMax> groups_;  // but the first
  std::vector<std::unique_ptr<std::array<float, 2>>> data_;
  std::vector<WorkPtr> works_;
};

RankMask mask_of(const std::vector<int>& ranks) {
  RankMask mask = 0;
  for (const int rank : ranks) mask |= 1U << rank;
  return mask;
}

Outcome expected_outcome(const MeetSearch& search, const MeetState& end) {
  if (search.ended_by(end, Do::kCrash) != 0) return Outcome::kLostRank;
  if (!search.mismatches().empty() || !search.crossed(end, search.stuck(end)).empty())
    return Outcome::kMismatch;
  if (search.stuck(end) != 0) return Outcome::kDeadlock;
  return search.ended_by(end, Do::kHang) != 0 ? Outcome::kLostRank : Outcome::kPasses;
}

// Whether some ranks could not go on even if all the others did anything, also those that ended.
bool has_circle(const MeetSearch& search, const MeetState& end) {
  const RankMask stuck = search.stuck(end);
  for (RankMask part = stuck; part != 0; part = (part - 1) & stuck) {
    bool is_held = true;
    for (int rank = 0; rank < test::kRanksMax; ++rank) {
      if (has_rank(part, rank)) is_held = is_held && !search.can_step(end, rank, ~part);
    }
    if (is_held) return true;
  }
  return false;
}

// Gloo's algorithms wait for some of those who are missing, not for all at once: so of several
// causes the verdict may name a part.
std::string check_deadlock(const MeetSearch& search, const MeetState& end,
                           const sim::Report& report, RankMask culprits) {
  const RankMask stuck = search.stuck(end);
  for (int rank = 0; rank < static_cast<int>(report.ranks.size()); ++rank) {
    if ((report.ranks[static_cast<std::size_t>(rank)].error != nullptr) != has_rank(stuck, rank)) {
      return "who is stuck";
    }
  }
  const RankMask ended = search.needed_ended(end, stuck);
  if ((culprits & ~stuck) != 0) {
    return (culprits & ~ended) == 0 ? "" : "blames a rank that nobody needs";
  }
  if (culprits != 0) {
    return (culprits & ~search.called_something_else(end, stuck)) == 0
               ? ""
               : "blames a rank that called what most call";
  }
  return has_circle(search, end) ? "" : "names nobody where nobody waits in a circle";
}

std::string check(const MeetSearch& search, const sim::Report& report, Outcome& outcome) {
  if (search.ends().size() != 1) return "the search has several ends";
  const MeetState& end = *search.ends().begin();
  const scenario::Verdict verdict = scenario::judge(report, std::nullopt);
  outcome = verdict.outcome;
  if (outcome != expected_outcome(search, end)) return "expected another outcome";
  if (report.virtual_time > 1'000'000'000) return "a verdict waited for a timeout";
  const RankMask culprits = mask_of(verdict.culprits);
  switch (outcome) {
    case Outcome::kLostRank: {
      const RankMask crashed = search.ended_by(end, Do::kCrash);
      return culprits == (crashed != 0 ? crashed : search.ended_by(end, Do::kHang)) ? ""
                                                                                    : "who is lost";
    }
    case Outcome::kMismatch: {
      if (report.verdict == sim::Verdict::kMismatch) {
        return culprits == search.odd_ones_of_crossed(end, search.stuck(end))
                   ? ""
                   : "who called on another group";
      }
      // Of ranks in the group that saw it.
      const bool has_odd = *search.mismatches().rbegin() != 0;
      return search.mismatches().contains(culprits) && (culprits != 0) == has_odd ? ""
                                                                                  : "who differs";
    }
    case Outcome::kDeadlock: return check_deadlock(search, end, report, culprits);
    default: return "";
  }
}

RankMask ranks_with_errors(const sim::Report& report) {
  RankMask mask = 0;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    if (report.ranks[rank].error != nullptr) mask |= 1U << rank;
  }
  return mask;
}

TEST(SimVerdict, IsWhatExhaustiveSearchFinds) {
  constexpr int kPrograms = 20'000;
  sim::StackPool stacks;
  std::map<Outcome, int> outcomes;
  int early = 0, crossed = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    MeetProgram program = test::MeetProgramDraw(seed, {.any = false, .contents = true}).draw();
    leave_out_failures_of_async(program);
    const MeetSearch search(program, true);
    const SimWorldOptions options{
        .world = {.world_size = program.size(), .seed = seed, .checked = true}, .stacks = &stacks};
    const sim::Report report =
        run_simulated_world(options, [&](RankContext& rank) { MeetRank(program, rank).run(); });
    const RankMask stuck = search.stuck(*search.ends().begin());
    const RankMask told = ranks_with_errors(report);
    const bool is_stuck =
        report.verdict == sim::Verdict::kDeadlock || report.verdict == sim::Verdict::kMismatch;
    crossed += report.verdict == sim::Verdict::kMismatch ? 1 : 0;
    if (is_stuck && search.mismatches().empty() && told != stuck) {
      ASSERT_EQ(told & ~stuck, 0u) << "program " << seed << ": " << report.verdict_text;
      ++early;
      continue;
    }
    Outcome outcome{};
    const std::string wrong = check(search, report, outcome);
    ASSERT_EQ(wrong, "") << "program " << seed << ": " << report.verdict_text;
    ++outcomes[outcome];
  }
  std::printf(
      "%d programs: %d deadlock, %d more while others go on, %d mismatch, %d of groups, %d lost "
      "rank, %d pass\n",
      kPrograms, outcomes[Outcome::kDeadlock], early, outcomes[Outcome::kMismatch], crossed,
      outcomes[Outcome::kLostRank], outcomes[Outcome::kPasses]);
  EXPECT_GT(outcomes[Outcome::kDeadlock], kPrograms / 4);
  EXPECT_GT(crossed, kPrograms / 100);
  for (const Outcome outcome : {Outcome::kMismatch, Outcome::kLostRank, Outcome::kPasses}) {
    EXPECT_GT(outcomes[outcome], kPrograms / 50);
  }
}

// Who is told as stuck beside a rank that goes on for ever is stuck at every end.
TEST(SimVerdict, IsRightBesideRanksThatGoOnForEver) {
  constexpr int kPrograms = 5'000;
  sim::StackPool stacks;
  int deadlocks = 0, endless = 0;
  for (std::uint64_t seed = 0; seed < kPrograms; ++seed) {
    MeetProgram program = test::MeetProgramDraw(seed, {.any = false, .endless = true}).draw();
    leave_out_failures_of_async(program);
    const MeetSearch search(program, true);
    const SimWorldOptions options{
        .world = {.world_size = program.size(), .seed = seed, .checked = true},
        .stacks = &stacks,
        .event_count_max = 40'000};
    const sim::Report report =
        run_simulated_world(options, [&](RankContext& rank) { MeetRank(program, rank).run(); });
    ASSERT_EQ(search.ends().size(), 1u);
    endless += report.verdict == sim::Verdict::kEventLimit ? 1 : 0;
    if (report.verdict != sim::Verdict::kDeadlock && report.verdict != sim::Verdict::kMismatch) {
      continue;
    }
    const MeetState& end = *search.ends().begin();
    deadlocks += search.has_spinning(end) ? 1 : 0;
    ASSERT_EQ(ranks_with_errors(report) & ~search.stuck(end), 0u)
        << "program " << seed << ": " << report.verdict_text;
  }
  std::printf("%d programs: %d deadlock while others go on for ever, %d end at the event limit\n",
              kPrograms, deadlocks, endless);
  EXPECT_GT(deadlocks, kPrograms / 50);
  EXPECT_GT(endless, kPrograms / 10);
}

}  // namespace
}  // namespace ddproof
