// Verdicts of deadlock and of mismatched groups against exhaustive search, on generated programs
// over the simulator's own waits: who is stuck, who is to blame, which ranks hold each other.
// 120,000 programs, and 60,000 of which most have a rank that goes on for ever.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "simulator/simulation.h"
#include "simulator/wait_list.h"
#include "tests/support/rendezvous.h"
#include "tests/support/rendezvous_search.h"

namespace ddproof::sim {
namespace {

using test::Do;
using test::has_rank;
using test::MeetProgram;
using test::MeetSearch;
using test::MeetState;
using test::MeetStep;
using test::RankMask;

// One run of a MeetProgram.
class MeetWorld {
 public:
  MeetWorld(const MeetProgram& program, const SimulationOptions& options)
      : program_(program), simulation_(options) {
    for (int i = 0; i < program.size() * test::kGroupsMax; ++i) queues_.emplace_back(simulation_);
    for (const RankMask group : program.groups) {
      std::vector<int>& members = members_.emplace_back();
      for (int rank = 0; rank < program.size(); ++rank) {
        if (has_rank(group, rank)) members.push_back(rank);
      }
    }
  }

  Report run() {
    for (int rank = 0; rank < program_.size(); ++rank) {
      simulation_.spawn(rank, "main", [this, rank] { run_rank(rank); });
    }
    return simulation_.run();
  }

  const MeetState& state() const { return state_; }

 private:
  struct Queue {
    explicit Queue(Simulation& simulation) : work(simulation), idle(simulation), met(simulation) {}
    WaitList work, idle, met;
    std::deque<const MeetStep*> steps;
    const MeetStep* posted = nullptr;
    std::vector<int> missing;  // what its first step waits for
    bool has_fiber = false;
  };

  Queue& queue(int rank, int group) {
    return queues_[static_cast<std::size_t>(rank * test::kGroupsMax + group)];
  }
  MeetState::Rank& state_of(int rank) { return state_.ranks[static_cast<std::size_t>(rank)]; }

  void run_rank(int rank) {
    for (const MeetStep& step : program_.ranks[static_cast<std::size_t>(rank)]) {
      ++state_of(rank).begun;
      if (test::is_queued(step)) {
        submit(rank, step);
        continue;
      }
      if (step.what == Do::kSleep) {
        simulation_.sleep(1'000);
        continue;
      }
      while (step.what == Do::kSpin) simulation_.sleep(1'000);
      if (step.what == Do::kPause) WaitList(simulation_).wait(simulation_, {.what = "pause"});
      wait_for_queues(rank);
      if (step.what == Do::kExit) return;
      if (step.what == Do::kCrash) simulation_.crash(rank);
      if (step.what == Do::kHang) simulation_.hang(rank);
    }
    wait_for_queues(rank);
  }

  // A synchronous step of an empty queue is done by the rank's main, as in a library that blocks.
  void submit(int rank, const MeetStep& step) {
    Queue& its = queue(rank, step.group);
    if (!step.is_async && its.steps.empty()) return perform(rank, its, step);
    its.steps.push_back(&step);
    if (!std::exchange(its.has_fiber, true)) {
      simulation_.spawn(rank, "queue", [this, rank, &its] { serve(rank, its); });
    }
    its.work.wake_all(simulation_);
    if (!step.is_async) wait_for(its);
  }

  void serve(int rank, Queue& its) {
    while (true) {
      while (its.steps.empty()) {
        its.work.wait(simulation_, {.what = "work", .kind = WaitKind::kIdle, .is_local = true});
      }
      perform(rank, its, *its.steps.front());
      its.steps.pop_front();
      its.idle.wake_all(simulation_);
    }
  }

  void wait_for(Queue& its) {
    while (!its.steps.empty()) {
      its.idle.wait(simulation_, {.what = "queue", .is_local = true}, patience());
    }
  }
  void wait_for_queues(int rank) {
    for (int group = 0; group < test::kGroupsMax; ++group) wait_for(queue(rank, group));
  }
  Deadline patience() const { return {simulation_.now() + 1'800'000'000'000, true}; }

  void perform(int rank, Queue& its, const MeetStep& step) {
    static constexpr std::array<const char*, test::kGroupsMax> kMeetings = {"meet 0", "meet 1",
                                                                            "meet 2"};
    its.posted = &step;
    if (step.what == Do::kMeet) {
      meet(rank, step.group);
    } else {
      pair_up(rank, its, step);
    }
    const bool meets = step.what == Do::kMeet;
    const auto group = static_cast<std::size_t>(step.group);
    const char* const what = meets ? kMeetings[group] : "message";
    const WaitReason reason{
        .what = what,
        .ranks = &its.missing,
        .gathers = meets ? &members_[group] : nullptr,
        .any = step.what == Do::kReceiveAny,
        .meeting = {meets ? MeetSearch::count(program_.groups[group]) : 0, what}};
    while (its.posted != nullptr) its.met.wait(simulation_, reason, patience());
  }

  void complete(int rank, int group) {
    ++state_of(rank).done[static_cast<std::size_t>(group)];
    queue(rank, group).posted = nullptr;
    queue(rank, group).met.wake_all(simulation_);
  }

  bool is_at(int rank, int group) {
    const MeetStep* step = queue(rank, group).posted;
    return step != nullptr && step->what == Do::kMeet;
  }

  void meet(int rank, int group) {
    const RankMask members = program_.groups[static_cast<std::size_t>(group)];
    std::vector<int> here, missing;
    for (int member = 0; member < program_.size(); ++member) {
      if (has_rank(members | 1U << rank, member)) {
        (is_at(member, group) ? here : missing).push_back(member);
      }
    }
    for (const int member : here) {
      if (missing.empty()) {
        complete(member, group);
      } else {
        queue(member, group).missing = missing;
      }
    }
  }

  void pair_up(int rank, Queue& its, const MeetStep& step) {
    its.missing = {step.peer};
    if (step.what == Do::kReceiveAny) its.missing.clear();
    for (int other = 0; other < program_.size(); ++other) {
      if (step.what == Do::kReceiveAny && has_rank(step.peers, other)) its.missing.push_back(other);
    }
    for (int other = 0; other < program_.size(); ++other) {
      if (other == rank || (!is_pair(rank, other) && !is_pair(other, rank))) continue;
      complete(rank, 0);
      complete(other, 0);
      return;
    }
  }

  bool is_pair(int from, int to) {
    const MeetStep* send = queue(from, 0).posted;
    const MeetStep* receive = queue(to, 0).posted;
    if (send == nullptr || receive == nullptr) return false;
    if (send->what != Do::kSend || send->peer != to || send->tag != receive->tag) return false;
    return receive->what == Do::kReceive
               ? receive->peer == from
               : receive->what == Do::kReceiveAny && has_rank(receive->peers, from);
  }

  const MeetProgram& program_;
  Simulation simulation_;
  std::deque<Queue> queues_;
  std::vector<std::vector<int>> members_;  // of each group
  MeetState state_;
};

RankMask mask_of(const std::vector<int>& ranks) {
  RankMask mask = 0;
  for (const int rank : ranks) mask |= 1U << rank;
  return mask;
}

bool is_minimal_core(const MeetSearch& search, const MeetState& state, RankMask core) {
  if (!search.is_core(state, core)) return false;
  for (RankMask part = (core - 1) & core; part != 0; part = (part - 1) & core) {
    if (search.is_core(state, part)) return false;
  }
  return true;
}

// Empty when the cores of the report are what they must be.
std::string check_cores(const MeetSearch& search, const MeetState& state, const Report& report,
                        RankMask stuck) {
  RankMask direct = 0;
  for (int rank = 0; rank < static_cast<int>(report.ranks.size()); ++rank) {
    if (has_rank(stuck, rank) && search.is_core(state, 1U << rank)) direct |= 1U << rank;
  }
  RankMask told = 0;
  for (const std::vector<int>& core : report.verdict_cores) {
    const RankMask ranks = mask_of(core);
    if ((told & ranks) != 0 || (ranks & ~stuck) != 0) return "a core holds others";
    const bool is_first_of_ended =
        told == 0 && direct != 0 && search.needed_ended(state, stuck) != 0;
    if (is_first_of_ended ? ranks != direct : !is_minimal_core(search, state, ranks)) {
      return "a core is not minimal";
    }
    told |= ranks;
  }
  const RankMask rest = stuck & ~told;
  for (RankMask part = rest; part != 0; part = (part - 1) & rest) {
    if (search.is_core(state, part)) return "a core is not told";
  }
  return told == 0 ? "no core is told" : "";
}

struct Counts {
  int programs = 0, deadlocks = 0, blame_ended = 0, circles = 0, odd = 0, any = 0, behind = 0,
      several_cores = 0, several_ends = 0, early = 0, endless = 0, crossed = 0;
};

RankMask ranks_that_threw(const Report& report) {
  RankMask mask = 0;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    if (report.ranks[rank].outcome == RankOutcome::kThrew) mask |= 1U << rank;
  }
  return mask;
}

// Whether the stuck ranks called on different groups, and who is to blame for that.
std::string check_crossed(const MeetSearch& search, const MeetState& state, const Report& report,
                          RankMask stuck) {
  const bool is_mismatch = report.verdict == Verdict::kMismatch;
  if (is_mismatch == search.crossed(state, stuck).empty()) return "deadlock or mismatch";
  if (!is_mismatch) return "";
  const RankMask odd = search.odd_ones_of_crossed(state, stuck);
  return mask_of(report.verdict_culprits) == odd ? "" : "who called on another group";
}

// Of the ranks that are `stuck`: which of them hold each other, and who is to blame.
std::string check_cause(const MeetSearch& search, const MeetState& state, const Report& report,
                        RankMask stuck, Counts& counts) {
  if (std::string wrong = check_cores(search, state, report, stuck); !wrong.empty()) return wrong;
  RankMask cores = 0;
  for (const std::vector<int>& core : report.verdict_cores) cores |= mask_of(core);
  if (std::string wrong = check_crossed(search, state, report, stuck); !wrong.empty()) return wrong;
  if (report.verdict == Verdict::kMismatch) {
    ++counts.crossed;
    return "";
  }
  const RankMask ended = search.needed_ended(state, stuck);
  const RankMask odd = ended != 0 ? 0 : search.called_something_else(state, cores);
  if (mask_of(report.verdict_culprits) != (ended | odd)) return "who is to blame";
  ++counts.deadlocks;
  counts.blame_ended += ended != 0 ? 1 : 0;
  counts.circles += ended == 0 ? 1 : 0;
  counts.odd += odd != 0 ? 1 : 0;
  counts.any += report.verdict_text.find("any of") != std::string::npos ? 1 : 0;
  counts.behind += (stuck & ~cores) != 0 ? 1 : 0;
  counts.several_cores += report.verdict_cores.size() > 1 ? 1 : 0;
  return "";
}

bool is_told(const Report& report) {
  return report.verdict == Verdict::kDeadlock || report.verdict == Verdict::kMismatch;
}

// A verdict while others went on: whatever they would have done, none of `stuck` moves again.
std::string check_early(const MeetProgram& program, const MeetSearch& search,
                        const MeetState& state, const Report& report, Counts& counts) {
  const RankMask stuck = ranks_that_threw(report);
  if (stuck == 0 || !is_told(report)) return "no rank is stuck";
  if (!search.has_seen(state)) return "the verdict came where no search did";
  const MeetSearch later(program, false, state);
  for (const MeetState& end : later.ends()) {
    for (int rank = 0; rank < program.size(); ++rank) {
      if (!has_rank(stuck, rank)) continue;
      const auto index = static_cast<std::size_t>(rank);
      if (!search.is_stuck(end, rank) || end.ranks[index] != state.ranks[index]) {
        return "a rank that is told as stuck goes on";
      }
    }
  }
  ++counts.early;
  return check_cause(search, state, report, stuck, counts);
}

// Empty when the verdict is what it must be.
std::string check(const MeetProgram& program, const MeetSearch& search, const MeetWorld& world,
                  const Report& report, Counts& counts) {
  const MeetState& state = world.state();
  ++counts.programs;
  if (report.virtual_time > 10'000'000) return "a verdict waited for a timeout";
  const RankMask stuck = search.stuck(state);
  const bool is_end = search.ends().contains(state);
  if (report.verdict == Verdict::kEventLimit) {
    ++counts.endless;
    if (!is_end) return "the run was stopped too early";
    return search.stuck_for_certain(state) == 0 ? "" : "a deadlock beside others was not told";
  }
  if (!is_end || search.has_spinning(state) || ranks_that_threw(report) != stuck) {
    return check_early(program, search, state, report, counts);
  }
  counts.several_ends += search.ends().size() > 1 ? 1 : 0;
  if (is_told(report) != (stuck != 0)) return "deadlock or none";
  for (int rank = 0; rank < program.size(); ++rank) {
    const RankOutcome outcome = report.ranks[static_cast<std::size_t>(rank)].outcome;
    if ((outcome == RankOutcome::kThrew) != has_rank(stuck, rank)) return "who is stuck";
    if ((outcome == RankOutcome::kCrashed) != has_rank(search.ended_by(state, Do::kCrash), rank) ||
        (outcome == RankOutcome::kHung) != has_rank(search.ended_by(state, Do::kHang), rank)) {
      return "who crashed or hung";
    }
  }
  return stuck == 0 ? "" : check_cause(search, state, report, stuck, counts);
}

// Enough for every end, and for the looks that find who is stuck while others go on.
constexpr std::uint64_t kEventsMax = 6'000;

// Runs so many programs, and counts what came of them.
Counts compare(int programs, test::MeetShape shape) {
  StackPool stacks;
  RandomWalk random_walk;
  Counts counts;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(programs); ++seed) {
    const MeetProgram program = test::MeetProgramDraw(seed, shape).draw();
    const MeetSearch search(program, false);
    MeetWorld world(program, {.ranks = program.size(),
                              .seed = seed,
                              .event_count_max = kEventsMax,
                              .scheduler = &random_walk,
                              .stacks = &stacks});
    const Report report = world.run();
    const std::string wrong = check(program, search, world, report, counts);
    EXPECT_EQ(wrong, "") << "program " << seed << ": " << report.verdict_text;
    if (!wrong.empty()) break;
  }
  std::printf(
      "%d programs: %d deadlock; %d of these blame ranks that ended, %d are circles, %d name who "
      "called something else, %d wait for any of several, %d have ranks behind, %d several cores, "
      "%d while others go on; %d mismatches of groups; %d programs end in several ways, %d never\n",
      counts.programs, counts.deadlocks, counts.blame_ended, counts.circles, counts.odd, counts.any,
      counts.behind, counts.several_cores, counts.early, counts.crossed, counts.several_ends,
      counts.endless);
  return counts;
}

TEST(VerdictSearch, DeadlocksAreWhatExhaustiveSearchFinds) {
  const Counts counts = compare(120'000, {});
  EXPECT_GT(counts.deadlocks, counts.programs * 2 / 5);
  EXPECT_LT(counts.deadlocks, counts.programs * 3 / 5);
  EXPECT_GT(counts.blame_ended, counts.deadlocks / 4);
  EXPECT_GT(counts.circles, counts.deadlocks / 10);
  EXPECT_GT(counts.odd, counts.deadlocks / 50);
  EXPECT_GT(counts.crossed, counts.deadlocks / 50);
  EXPECT_GT(counts.any, counts.deadlocks / 50);
  EXPECT_GT(counts.behind, counts.deadlocks / 50);
  EXPECT_GT(counts.several_cores, 100);
  EXPECT_GT(counts.several_ends, counts.programs / 500);
}

TEST(VerdictSearch, DeadlocksBesideRanksThatGoOnForEverAreWhatExhaustiveSearchFinds) {
  const Counts counts = compare(60'000, {.endless = true});
  EXPECT_GT(counts.early, counts.programs / 20);
  EXPECT_GT(counts.endless, counts.programs / 10);
  EXPECT_GT(counts.behind, counts.programs / 100);
  EXPECT_GT(counts.blame_ended, counts.programs / 100);
  EXPECT_GT(counts.odd, counts.programs / 1000);
}

}  // namespace
}  // namespace ddproof::sim
