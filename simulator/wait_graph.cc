#include "simulator/wait_graph.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "simulator/check.h"

namespace ddproof::sim {
namespace {

using Node = std::size_t;  // a waiting rank, by its place among them
constexpr Node kNoNode = static_cast<Node>(-1);

struct Wait {
  const RankWait* told;
  Node node;
  std::vector<Node> live;  // that it waits for and that wait themselves
  std::vector<int> ended;  // that it waits for and that do not

  bool needs_ended() const { return !ended.empty() && (!told->any || live.empty()); }
};

class WaitGraph {
 public:
  explicit WaitGraph(const std::vector<RankWait>& told) {
    for (const RankWait& wait : told) ranks_.push_back(wait.rank);
    std::ranges::sort(ranks_);
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
    node_of_.resize(static_cast<std::size_t>(ranks_.back()) + 1, kNoNode);
    for (Node node = 0; node < ranks_.size(); ++node) {
      node_of_[static_cast<std::size_t>(ranks_[node])] = node;
    }
    waits_of_.resize(ranks_.size());
    waited_for_by_.resize(ranks_.size());
    for (const RankWait& wait : told) add(wait);
  }

  DeadlockCause cause(const std::vector<RankWait>& elsewhere) const {
    DeadlockCause result;
    std::set<int> ended;
    for (const Wait& wait : waits_) {
      if (wait.needs_ended()) ended.insert(wait.ended.begin(), wait.ended.end());
    }
    result.culprits.assign(ended.begin(), ended.end());
    result.culprits_ended = !ended.empty();
    for (const std::vector<Node>& core : cores()) {
      std::vector<int>& ranks = result.cores.emplace_back();
      for (const Node node : core) ranks.push_back(ranks_[node]);
    }
    if (result.culprits.empty()) result.culprits = odd_ones(result.cores, elsewhere);
    return result;
  }

 private:
  Node node_of(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    return index < node_of_.size() ? node_of_[index] : kNoNode;
  }

  void add(const RankWait& told) {
    Wait wait{&told, node_of(told.rank), {}, {}};
    for (const int rank : told.ranks) {
      const Node node = node_of(rank);
      if (node == kNoNode) {
        wait.ended.push_back(rank);
      } else {
        wait.live.push_back(node);
      }
    }
    std::ranges::sort(wait.live);
    wait.live.erase(std::unique(wait.live.begin(), wait.live.end()), wait.live.end());
    for (const Node node : wait.live) waited_for_by_[node].push_back(waits_.size());
    waits_of_[wait.node].push_back(waits_.size());
    waits_.push_back(std::move(wait));
  }

  // Ranks that cannot go on whatever all others do. Never has one for it is not known whom it
  // waits.
  class StuckSet {
   public:
    // The largest part of `members` that is one.
    StuckSet(const WaitGraph& graph, const std::vector<Node>& members)
        : graph_(graph), has_(graph.ranks_.size()), holders_(graph.waits_.size()) {
      put_back(members);
      for (const Node node : members) {
        if (contains(node) && !is_held(node)) take_out(node);
      }
    }

    bool contains(Node node) const { return has_[node] != 0; }
    bool empty() const { return size_ == 0; }
    std::vector<Node> members() const {
      std::vector<Node> result;
      for (Node node = 0; node < has_.size(); ++node) {
        if (contains(node)) result.push_back(node);
      }
      return result;
    }

    // Without this one and all who then could go on: these, in order.
    std::vector<Node> take_out(Node node) {
      std::vector<Node> gone;
      drop(node, gone);
      for (std::size_t i = 0; i < gone.size(); ++i) {
        for (const std::size_t w : graph_.waited_for_by_[gone[i]]) {
          --holders_[w];
          const Node waiter = graph_.waits_[w].node;
          if (contains(waiter) && !is_wait_held(w)) drop(waiter, gone);
        }
      }
      return gone;
    }
    void put_back(const std::vector<Node>& nodes) {
      for (const Node node : nodes) {
        has_[node] = 1;
        ++size_;
        for (const std::size_t w : graph_.waited_for_by_[node]) ++holders_[w];
      }
    }

   private:
    void drop(Node node, std::vector<Node>& gone) {
      has_[node] = 0;
      --size_;
      gone.push_back(node);
    }
    bool is_wait_held(std::size_t w) const {
      const Wait& wait = graph_.waits_[w];
      if (wait.needs_ended()) return true;
      return wait.told->any ? holders_[w] == wait.live.size() : holders_[w] > 0;
    }
    bool is_held(Node node) const {
      return std::ranges::all_of(graph_.waits_of_[node],
                                 [this](std::size_t w) { return is_wait_held(w); });
    }

    const WaitGraph& graph_;
    std::vector<char> has_;
    std::size_t size_ = 0;
    std::vector<std::size_t> holders_;  // per wait: how many of the set it waits for
  };

  // `first`, which is in `stuck`, with as many others as hold it.
  std::vector<Node> some_core(const StuckSet& stuck, Node first) const {
    std::vector<char> is_in(ranks_.size());
    std::vector<Node> core;
    const auto join = [&](Node node) {
      if (std::exchange(is_in[node], 1) == 0) core.push_back(node);
    };
    join(first);
    for (std::size_t i = 0; i < core.size(); ++i) {
      for (const std::size_t w : waits_of_[core[i]]) {
        const Wait& wait = waits_[w];
        if (wait.needs_ended()) continue;
        if (wait.told->any) {
          for (const Node target : wait.live) join(target);
        } else if (std::ranges::none_of(wait.live, [&](Node t) { return is_in[t] != 0; })) {
          join(*std::ranges::find_if(wait.live, [&](Node t) { return stuck.contains(t); }));
        }
      }
    }
    return core;
  }

  std::vector<Node> minimal_core(const StuckSet& stuck, Node first) const {
    StuckSet core(*this, some_core(stuck, first));
    for (const Node node : core.members()) {
      if (!core.contains(node)) continue;
      const std::vector<Node> gone = core.take_out(node);
      if (core.empty()) core.put_back(gone);
    }
    return core.members();
  }

  std::vector<std::vector<Node>> cores() const {
    std::vector<Node> all(ranks_.size());
    std::iota(all.begin(), all.end(), Node{0});
    std::vector<std::vector<Node>> result;
    StuckSet stuck(*this, all);
    const auto take = [&](std::vector<Node> core) {
      for (const Node node : core) {
        if (stuck.contains(node)) stuck.take_out(node);
      }
      result.push_back(std::move(core));
    };
    std::vector<Node> without_ended;
    std::ranges::copy_if(all, std::back_inserter(without_ended), [this](Node node) {
      return std::ranges::all_of(waits_of_[node],
                                 [this](std::size_t w) { return waits_[w].needs_ended(); });
    });
    if (!without_ended.empty()) take(std::move(without_ended));
    for (const Node node : all) {
      while (stuck.contains(node)) take(minimal_core(stuck, node));
    }
    // Anybody might help those who do not say for whom they wait: so it takes all together.
    if (result.empty()) result.push_back(std::move(all));
    return result;
  }

  // Per call in which ranks meet: who is in it, and whom they still wait for.
  std::vector<int> odd_ones(const std::vector<std::vector<int>>& cores,
                            const std::vector<RankWait>& elsewhere) const {
    struct Meeting {
      std::set<int> here, missing;
      std::size_t size;
    };
    std::map<std::string, Meeting> meetings;
    for (const Wait& wait : waits_) {
      if (wait.told->meeting == 0) continue;
      Meeting& meeting = meetings[wait.told->call];
      meeting.size = static_cast<std::size_t>(wait.told->meeting);
      meeting.here.insert(ranks_[wait.node]);
      meeting.missing.insert(wait.told->ranks.begin(), wait.told->ranks.end());
    }
    for (const RankWait& wait : elsewhere) {
      const auto meeting = meetings.find(wait.call);
      if (meeting != meetings.end()) meeting->second.here.insert(wait.rank);
    }
    std::set<int> stuck;
    for (const std::vector<int>& core : cores) stuck.insert(core.begin(), core.end());
    const auto in_core = [&stuck](int rank) { return stuck.contains(rank); };
    std::set<int> odd;
    for (auto& [call, meeting] : meetings) {
      std::vector<int> missing;
      std::ranges::set_difference(meeting.missing, meeting.here, std::back_inserter(missing));
      if (2 * meeting.here.size() <= meeting.size) continue;
      if (std::ranges::none_of(meeting.here, in_core)) continue;
      std::ranges::copy_if(missing, std::inserter(odd, odd.end()), in_core);
    }
    return {odd.begin(), odd.end()};
  }

  std::vector<int> ranks_;     // that wait, ascending
  std::vector<Node> node_of_;  // by rank
  std::vector<Wait> waits_;
  std::vector<std::vector<std::size_t>> waits_of_;       // by node
  std::vector<std::vector<std::size_t>> waited_for_by_;  // by node
};

}  // namespace

DeadlockCause find_cause(const std::vector<RankWait>& waits,
                         const std::vector<RankWait>& elsewhere) {
  SIM_CHECK(!waits.empty());
  return WaitGraph(waits).cause(elsewhere);
}

std::set<int> find_roots(const std::vector<RankWait>& waits, const std::set<int>& innocent) {
  if (waits.empty()) return {};
  const DeadlockCause cause = find_cause(waits);
  std::set<int> roots;
  for (std::size_t i = cause.culprits_ended ? 1 : 0; i < cause.cores.size(); ++i) {
    roots.insert(cause.cores[i].begin(), cause.cores[i].end());
  }
  const auto is_innocent = [&](int rank) { return innocent.contains(rank); };
  if (cause.culprits_ended) {
    std::ranges::copy_if(cause.culprits, std::inserter(roots, roots.end()),
                         std::not_fn(is_innocent));
  }
  for (const RankWait& wait : waits) {
    if (std::ranges::all_of(wait.ranks, is_innocent)) roots.insert(wait.rank);
  }
  return roots;
}

}  // namespace ddproof::sim
