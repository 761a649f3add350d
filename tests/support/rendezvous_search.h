// What can come of a MeetProgram, by trying everything: the states in which nothing can happen any
// more, and what a verdict must say in each. Written from the meaning of the steps alone; knows
// nothing of the simulator.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "tests/support/rendezvous.h"

namespace ddproof::test {

struct MeetState {
  struct Rank {
    std::uint8_t begun = 0;                       // steps
    std::array<std::uint8_t, kGroupsMax> done{};  // of each queue
    bool has_failed = false;                      // its call was not what its peers called
    auto operator<=>(const Rank&) const = default;
  };
  std::array<Rank, kRanksMax> ranks{};
  auto operator<=>(const MeetState&) const = default;
};

class MeetSearch {
 public:
  // `compares`: where the contents of a meeting differ, all its ranks fail.
  // From `start` on, in which ranks may have steps before them that they do on their own.
  MeetSearch(const MeetProgram& program, bool compares, MeetState start = {})
      : program_(program), compares_(compares) {
    advance(start);
    visit(start);
  }

  // In which nothing can happen any more.
  const std::set<MeetState>& ends() const { return ends_; }
  // The members outside of the majority, by their ranks in the group, for each meeting whose
  // contents differ in some run; a pair has none.
  const std::set<RankMask>& mismatches() const { return mismatches_; }

  // Whether this can come, or could if ranks did what they do on their own.
  bool has_seen(MeetState state) const {
    advance(state);
    return seen_.contains(state);
  }

  // --- What holds in an end ---

  bool is_stuck(const MeetState& state, int rank) const {
    return !has_ended(state, rank) && !spins(state, rank);
  }
  RankMask stuck(const MeetState& state) const {
    return ranks_where([&](int rank) { return is_stuck(state, rank); });
  }
  bool has_spinning(const MeetState& state) const {
    return ranks_where([&](int rank) { return spins(state, rank); }) != 0;
  }
  // Those of the stuck ones of whom it is certain though others go on: whoever could help them is
  // one of them or has ended.
  RankMask stuck_for_certain(const MeetState& state) const {
    RankMask certain = stuck(state);
    for (RankMask last = 0; last != certain;) {
      last = certain;
      for (int rank = 0; rank < program_.size(); ++rank) {
        if (has_rank(certain, rank) && (helpers(state, rank) & live(state) & ~certain) != 0) {
          certain &= ~(1U << rank);
        }
      }
    }
    return certain;
  }
  // The ranks whose end was such a step.
  RankMask ended_by(const MeetState& state, Do what) const {
    return ranks_where([&](int rank) {
      const auto begun = of(state, rank).begun;
      return has_ended(state, rank) && begun > 0 && steps_of(rank)[begun - 1U].what == what;
    });
  }

  // Whether a stuck rank could go on if all of `willing` did whatever it takes, also those that
  // have ended, and nobody else did anything.
  bool can_step(const MeetState& state, int rank, RankMask willing) const {
    bool is_queued_up = false;
    for (int group = 0; group < kGroupsMax; ++group) {
      const MeetStep* step = first_of(state, rank, group);
      if (step == nullptr) continue;
      is_queued_up = true;
      if (fits(state, rank, *step, willing)) return true;
    }
    return !is_queued_up && (willing & ~(1U << rank)) != 0;  // a pause
  }

  // Whether none of `ranks` can take a step whatever the other stuck ranks do.
  bool is_core(const MeetState& state, RankMask ranks) const {
    const RankMask willing = live(state) & ~ranks;
    for (int rank = 0; rank < program_.size(); ++rank) {
      if (has_rank(ranks, rank) && can_step(state, rank, willing)) return false;
    }
    return ranks != 0;
  }

  // The ended ranks without which a step of these cannot be done, even if all others did anything.
  RankMask needed_ended(const MeetState& state, RankMask of_whom) const {
    RankMask needed = 0;
    const RankMask willing = live(state);
    const RankMask ended = ranks_where([&](int rank) { return has_ended(state, rank); });
    for (int rank = 0; rank < program_.size(); ++rank) {
      for (int group = 0; group < kGroupsMax && has_rank(of_whom, rank); ++group) {
        const MeetStep* step = first_of(state, rank, group);
        if (step == nullptr || fits(state, rank, *step, willing)) continue;
        for (int other = 0; other < program_.size(); ++other) {
          if (!has_rank(ended, other)) continue;
          // In a minimal set: with all the ended but this one it fails, or it is enough alone.
          if (!fits(state, rank, *step, willing | (ended & ~(1U << other))) ||
              fits(state, rank, *step, willing | 1U << other)) {
            needed |= 1U << other;
          }
        }
      }
    }
    return needed;
  }

  // The ranks in `cores` that miss a meeting in which more than half of its members are already,
  // one of them in `cores`.
  RankMask called_something_else(const MeetState& state, RankMask cores) const {
    RankMask odd = 0;
    for (int group = 0; group < kGroupsMax; ++group) {
      const RankMask here = ranks_where([&](int rank) { return is_at(state, rank, group); });
      const RankMask missing = members(group) & ~here;
      if (count(here) > count(missing) && (here & cores) != 0) odd |= missing & cores;
    }
    return odd;
  }

  // The meetings, as pairs, that can never be, since each misses ranks of `whom` that are at the
  // other one, some of them with nothing else before them.
  std::vector<std::pair<int, int>> crossed(const MeetState& state, RankMask whom) const {
    std::vector<std::pair<int, int>> pairs;
    for (int a = 0; a < kGroupsMax; ++a) {
      for (int b = 0; b < a; ++b) {
        if (is_held_by(state, whom, a, b) && is_held_by(state, whom, b, a))
          pairs.emplace_back(a, b);
      }
    }
    return pairs;
  }
  // The members outside of the majority, of the meetings that are crossed.
  RankMask odd_ones_of_crossed(const MeetState& state, RankMask whom) const {
    RankMask odd = 0;
    for (const auto& [a, b] : crossed(state, whom)) {
      for (const int group : {a, b}) {
        const RankMask missing = members(group) & ~at(state, whom, group);
        if (2 * count(missing) < count(members(group))) odd |= missing;
      }
    }
    return odd;
  }

  static int count(RankMask mask) { return __builtin_popcount(mask); }

 private:
  RankMask live(const MeetState& state) const {
    return ranks_where([&](int rank) { return !has_ended(state, rank); });
  }
  bool latest_is(const MeetState& state, int rank, Do what) const {
    const auto begun = of(state, rank).begun;
    return begun > 0 && steps_of(rank)[begun - 1U].what == what;
  }
  bool spins(const MeetState& state, int rank) const { return latest_is(state, rank, Do::kSpin); }
  // Who might let the stuck rank go on, by doing something or by leaving.
  RankMask helpers(const MeetState& state, int rank) const {
    RankMask result = 0;
    if (latest_is(state, rank, Do::kPause)) return ~(1U << rank);
    for (int group = 0; group < kGroupsMax; ++group) {
      const MeetStep* step = first_of(state, rank, group);
      if (step == nullptr) continue;
      if (step->what == Do::kMeet) {
        result |=
            members(group) & ~ranks_where([&](int other) { return is_at(state, other, group); });
      } else {
        result |= step->what == Do::kReceiveAny ? step->peers : 1U << step->peer;
      }
    }
    return result;
  }

  const std::vector<MeetStep>& steps_of(int rank) const {
    return program_.ranks[static_cast<std::size_t>(rank)];
  }
  RankMask members(int group) const { return program_.groups[static_cast<std::size_t>(group)]; }
  static const MeetState::Rank& of(const MeetState& state, int rank) {
    return state.ranks[static_cast<std::size_t>(rank)];
  }
  RankMask ranks_where(const std::function<bool(int)>& holds) const {
    RankMask mask = 0;
    for (int rank = 0; rank < program_.size(); ++rank) {
      if (holds(rank)) mask |= 1U << rank;
    }
    return mask;
  }

  // The first step of a queue that is not done; null when there is none.
  const MeetStep* first_of(const MeetState& state, int rank, int group) const {
    const MeetState::Rank& its = of(state, rank);
    if (its.has_failed) return nullptr;
    int place = 0;
    for (std::size_t i = 0; i < its.begun; ++i) {
      const MeetStep& step = steps_of(rank)[i];
      if (!is_queued(step) || step.group != group) continue;
      if (place++ == its.done[static_cast<std::size_t>(group)]) return &step;
    }
    return nullptr;
  }
  bool is_idle(const MeetState& state, int rank) const {
    for (int group = 0; group < kGroupsMax; ++group) {
      if (first_of(state, rank, group) != nullptr) return false;
    }
    return true;
  }
  bool is_at(const MeetState& state, int rank, int group) const {
    const MeetStep* step = first_of(state, rank, group);
    return step != nullptr && step->what == Do::kMeet;
  }

  // Whether the latest step lets the rank go on to its next.
  bool is_over(const MeetState& state, int rank) const {
    const MeetState::Rank& its = of(state, rank);
    if (its.begun == 0) return true;
    const MeetStep& step = steps_of(rank)[its.begun - 1U];
    if (is_queued(step)) return step.is_async || first_of(state, rank, step.group) == nullptr;
    if (step.what == Do::kSleep) return true;
    return step.what == Do::kWait && is_idle(state, rank);
  }
  bool has_ended(const MeetState& state, int rank) const {
    const MeetState::Rank& its = of(state, rank);
    if (its.has_failed) return true;
    if (!is_idle(state, rank)) return false;
    if (its.begun > 0) {
      const Do latest = steps_of(rank)[its.begun - 1U].what;
      if (latest == Do::kExit || latest == Do::kCrash || latest == Do::kHang) return true;
      if (latest == Do::kPause || latest == Do::kSpin) return false;
    }
    return its.begun == steps_of(rank).size();
  }

  RankMask at(const MeetState& state, RankMask whom, int group) const {
    return whom & ranks_where([&](int rank) { return is_at(state, rank, group); });
  }
  bool is_held_by(const MeetState& state, RankMask whom, int group, int other) const {
    const auto is_only_at_other = [&](int rank) {
      for (int third = 0; third < kGroupsMax; ++third) {
        if ((first_of(state, rank, third) != nullptr) != (third == other)) return false;
      }
      return is_at(state, rank, other);
    };
    const RankMask missing = members(group) & ~at(state, whom, group);
    return (missing & ranks_where(is_only_at_other)) != 0 &&
           (missing & ~at(state, whom, other)) == 0;
  }

  // What a rank does on its own happens at once: it can only make more possible.
  void advance(MeetState& state) const {
    for (int rank = 0; rank < program_.size(); ++rank) {
      MeetState::Rank& its = state.ranks[static_cast<std::size_t>(rank)];
      while (!its.has_failed && its.begun < steps_of(rank).size() && is_over(state, rank)) {
        ++its.begun;
      }
    }
  }

  static bool takes(const MeetStep& receive, int from) {
    if (receive.what == Do::kReceive) return receive.peer == from;
    return receive.what == Do::kReceiveAny && has_rank(receive.peers, from);
  }
  // Whether `from`'s send and `to`'s receive are first in their queues and belong together.
  bool is_pair(const MeetState& state, int from, int to) const {
    const MeetStep* send = first_of(state, from, 0);
    const MeetStep* receive = first_of(state, to, 0);
    return send != nullptr && receive != nullptr && send->what == Do::kSend && send->peer == to &&
           takes(*receive, from) && send->tag == receive->tag;
  }

  bool fits(const MeetState& state, int rank, const MeetStep& step, RankMask willing) const {
    const auto is_willing = [&](int other) { return has_rank(willing & ~(1U << rank), other); };
    switch (step.what) {
      case Do::kSend: return is_willing(step.peer) || is_pair(state, rank, step.peer);
      case Do::kReceive: return is_willing(step.peer) || is_pair(state, step.peer, rank);
      case Do::kReceiveAny:
        for (int from = 0; from < program_.size(); ++from) {
          if (!has_rank(step.peers, from)) continue;
          if (is_willing(from) || is_pair(state, from, rank)) return true;
        }
        return false;
      default:
        for (int other = 0; other < program_.size(); ++other) {
          if (!has_rank(members(step.group), other) || is_willing(other)) continue;
          if (!is_at(state, other, step.group)) return false;
        }
        return true;
    }
  }

  void visit(const MeetState& state) {
    if (!seen_.insert(state).second) return;
    bool is_end = true;
    for (int from = 0; from < program_.size(); ++from) {
      for (int to = 0; to < program_.size(); ++to) {
        if (from == to || !is_pair(state, from, to)) continue;
        meet(state, 1U << from | 1U << to, 0);
        is_end = false;
      }
    }
    for (int group = 0; group < kGroupsMax; ++group) {
      const RankMask here = ranks_where([&](int rank) { return is_at(state, rank, group); });
      if ((members(group) & ~here) != 0) continue;
      meet(state, members(group), group);
      is_end = false;
    }
    if (is_end) ends_.insert(state);
  }

  void meet(MeetState state, RankMask ranks, int group) {
    RankMask with_one = 0;
    for (int rank = 0; rank < program_.size(); ++rank) {
      if (!has_rank(ranks, rank)) continue;
      if (first_of(state, rank, group)->content != 0) with_one |= 1U << rank;
    }
    const bool fails = compares_ && with_one != 0 && with_one != ranks;
    if (fails) {
      const bool is_meeting = is_at(state, __builtin_ctz(ranks), group);
      mismatches_.insert(is_meeting ? places(odd_ones(ranks, with_one), ranks) : 0);
    }
    for (int rank = 0; rank < program_.size(); ++rank) {
      if (!has_rank(ranks, rank)) continue;
      MeetState::Rank& its = state.ranks[static_cast<std::size_t>(rank)];
      ++its.done[static_cast<std::size_t>(group)];
      its.has_failed = its.has_failed || fails;
    }
    advance(state);
    visit(state);
  }

  static RankMask odd_ones(RankMask ranks, RankMask with_one) {
    const RankMask others = ranks & ~with_one;
    if (count(with_one) == count(others)) return 0;
    return count(with_one) < count(others) ? with_one : others;
  }
  // `some` of `ranks`, by their place among these.
  static RankMask places(RankMask some, RankMask ranks) {
    RankMask result = 0;
    int place = 0;
    for (int rank = 0; rank < kRanksMax; ++rank) {
      if (!has_rank(ranks, rank)) continue;
      if (has_rank(some, rank)) result |= 1U << place;
      ++place;
    }
    return result;
  }

  const MeetProgram& program_;
  bool compares_;
  std::set<MeetState> seen_;
  std::set<MeetState> ends_;
  std::set<RankMask> mismatches_;
};

}  // namespace ddproof::test
