// Small programs whose ranks meet: sends and receives, collectives on groups, waits, ends of all
// kinds. What deadlock verdicts are checked with; rendezvous_search.h says what must come of them.
//
// A rank runs its steps one after another. Sends, receives and meetings go through one queue per
// group (sends and receives through that of group 0, which has all ranks) and are done in its
// order; an asynchronous step does not wait for its own. A send and its receive, and all members of
// a meeting, are done together, once all of them are first in their queues.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/random.h"

namespace ddproof::test {

enum class Do : std::uint8_t {
  kSend,
  kReceive,
  kReceiveAny,  // from any of `peers`
  kMeet,        // all of `group`
  kSleep,
  kWait,   // for all queues of the rank
  kPause,  // for ever, and nobody knows for whom
  kSpin,   // goes on for ever, and meets nobody
  kExit,   // these three wait for all queues first
  kCrash,
  kHang,
};

inline constexpr int kRanksMax = 4;
inline constexpr int kGroupsMax = 3;
inline constexpr std::size_t kStepsMax = 7;

using RankMask = unsigned;  // bit r: rank r

struct MeetStep {
  Do what = Do::kSleep;
  int peer = 0;        // of sends and receives
  RankMask peers = 0;  // of kReceiveAny
  int group = 0;
  int tag = 0;
  int content = 0;  // what must be the same on all sides where calls are compared
  bool is_async = false;
};

inline bool is_queued(const MeetStep& step) { return step.what <= Do::kMeet; }

struct MeetProgram {
  std::vector<RankMask> groups;
  std::vector<std::vector<MeetStep>> ranks;

  int size() const { return static_cast<int>(ranks.size()); }
};

inline bool has_rank(RankMask mask, int rank) { return (mask >> rank & 1U) != 0; }

struct MeetShape {
  bool any = true;        // with kReceiveAny and kPause
  bool contents = false;  // contents differ now and then
  bool endless = false;   // most programs have a rank with kSpin
};

// Draws a program in which everything meets, then breaks most of them in one or two places.
class MeetProgramDraw {
 public:
  MeetProgramDraw(std::uint64_t seed, MeetShape shape) : random_(sim::mix64(seed)), shape_(shape) {}

  MeetProgram draw() {
    const int ranks = shape_.endless ? kRanksMax : 2 + below(kRanksMax - 1);
    program_.ranks.resize(static_cast<std::size_t>(ranks));
    draw_groups();
    for (int count = 1 + below(5); count > 0; --count) add_event();
    if (one_in(3)) make_async();
    if (!one_in(4)) {
      for (int breaks = 1 + below(2); breaks > 0; --breaks) break_it();
    }
    if (shape_.endless && !one_in(4)) spin(steps(below(program_.size())));
    return std::move(program_);
  }

 private:
  int below(int bound) {
    return static_cast<int>(sim::below(random_.next(), static_cast<std::uint64_t>(bound)));
  }
  bool one_in(int n) { return below(n) == 0; }
  int other_than(int rank) { return (rank + 1 + below(program_.size() - 1)) % program_.size(); }
  std::vector<MeetStep>& steps(int rank) { return program_.ranks[static_cast<std::size_t>(rank)]; }
  void append(int rank, const MeetStep& step) {
    if (steps(rank).size() < kStepsMax) steps(rank).push_back(step);
  }

  void draw_groups() {
    const RankMask all = (1U << program_.size()) - 1;
    program_.groups = {all};
    while (program_.groups.size() < kGroupsMax) {
      const auto mask = static_cast<RankMask>(below(static_cast<int>(all) + 1));
      if ((mask & (mask - 1)) != 0) program_.groups.push_back(mask);  // two ranks or more
    }
  }

  void add_event() {
    if (one_in(6)) append(below(program_.size()), {.what = Do::kSleep});
    if (one_in(2)) {
      const int group = below(kGroupsMax);
      for (int rank = 0; rank < program_.size(); ++rank) {
        if (!has_rank(program_.groups[static_cast<std::size_t>(group)], rank)) continue;
        append(rank, {.what = Do::kMeet, .group = group});
      }
      return;
    }
    const int from = below(program_.size()), to = other_than(from), tag = below(2);
    append(from, {.what = Do::kSend, .peer = to, .tag = tag});
    MeetStep receive{.what = Do::kReceive, .peer = from, .tag = tag};
    if (shape_.any && one_in(3)) {
      receive.what = Do::kReceiveAny;
      receive.peers = (1U << from | 1U << other_than(to)) & ~(1U << to);
    }
    append(to, receive);
  }

  void make_async() {
    for (auto& rank : program_.ranks) {
      for (MeetStep& step : rank) step.is_async = is_queued(step) && one_in(2);
    }
    append(below(program_.size()), {.what = Do::kWait});
  }

  void break_it() {
    const int rank = below(program_.size());
    auto& its = steps(rank);
    if (its.empty()) return;
    const auto place = static_cast<std::size_t>(below(static_cast<int>(its.size())));
    MeetStep& step = its[place];
    switch (below(shape_.contents ? 10 : 8)) {
      case 0: its.erase(its.begin() + static_cast<std::ptrdiff_t>(place)); return;
      case 1: std::swap(step, its[(place + 1) % its.size()]); return;
      case 2: std::swap(its.front(), its.back()); return;
      case 3: step.peer = other_than(rank); return;
      case 4: step.tag ^= 1; return;
      case 5: append(rank, step); return;
      case 6: step = {.what = end_of(below(3))}; return;
      case 7: step = replacement(); return;
      default: step.content = 1; return;
    }
  }

  void spin(std::vector<MeetStep>& its) {
    its.resize(static_cast<std::size_t>(below(static_cast<int>(its.size()) + 1)));
    its.push_back({.what = Do::kSpin});
  }

  static Do end_of(int kind) { return kind == 0 ? Do::kExit : kind == 1 ? Do::kCrash : Do::kHang; }

  MeetStep replacement() {
    if (shape_.any && one_in(4)) return {.what = Do::kPause};
    return {.what = Do::kSleep};
  }

  sim::SplitMix64 random_;
  MeetShape shape_;
  MeetProgram program_;
};

}  // namespace ddproof::test
