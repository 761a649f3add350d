#include "properties/scenario/scenario_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "backends/api/placement.h"
#include "properties/scenario/parse_call.h"
#include "properties/scenario/rank_set.h"
#include "simulator/fault_plan.h"

namespace ddproof::scenario {
namespace {

constexpr int kLost = -1;

std::vector<int> ranks_of(const std::string& text, int end) {
  std::vector<int> ranks;
  for (const std::int64_t rank : RankSet::parse(text, end, "rank").numbers()) {
    ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// "0-2,5". Requires: ascending, not empty.
std::string text_of(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (end > i + 1) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
  }
  return text;
}

Placement placement_of(const Json& document) {
  const int world_size = document.at("world_size").get<int>();
  if (document.contains("nodes")) {
    return place_in_turns(world_size, document["nodes"].get<std::vector<int>>());
  }
  return place_in_blocks(world_size, document.value("ranks_per_node", world_size));
}

// Steps, faults and culprits with other numbers for the ranks.
class Renumbering {
 public:
  Renumbering(int world_size, const std::vector<int>& kept, LostPeer lost_peer)
      : numbers_(static_cast<std::size_t>(world_size), kLost),
        kept_(static_cast<int>(kept.size())),
        lost_peer_(lost_peer) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      numbers_[static_cast<std::size_t>(kept[i])] = static_cast<int>(i);
    }
  }

  int operator()(int rank) const { return numbers_[static_cast<std::size_t>(rank)]; }

  std::vector<int> operator()(const std::vector<int>& ranks) const {
    std::vector<int> result;
    for (const int rank : ranks) {
      if ((*this)(rank) != kLost) result.push_back((*this)(rank));
    }
    return result;
  }

  Json steps(const Json& steps) const {
    Json result = Json::array();
    for (const Json& step : steps) add_step(step, result);
    return result;
  }

  std::optional<sim::Fault> fault(sim::Fault fault) const {
    if (fault.kind == sim::FaultKind::kPartition) {
      fault.ranks = (*this)(fault.ranks);
      if (fault.ranks.empty()) return std::nullopt;
      return fault;
    }
    if (strikes_a_message(fault.kind)) fault.peer = (*this)(fault.peer);
    fault.rank = (*this)(fault.rank);
    if (fault.rank == kLost || fault.peer == kLost) return std::nullopt;
    return fault;
  }

 private:
  void add_step(Json step, Json& result) const {
    for (const char* key : {"to", "from"}) {
      if (!step.contains(key)) continue;
      const int peer = peer_of(step[key].get<int>(), key == std::string_view("to") ? 1 : -1);
      if (peer == kLost) return;
      step[key] = peer;
    }
    if (kept_ < static_cast<int>(numbers_.size())) expect_anew(step);
    if (step.contains("root")) {
      const int root = (*this)(step["root"].get<int>());
      step["root"] = std::max(0, root);
      if (root == kLost && step.contains("group")) step.erase("root");
    }
    for (const char* key : kStepLists) {
      if (step.contains(key)) step[key] = steps(step[key]);
    }
    if (step.at("do") == "if" && step.contains("ranks")) {
      const int world_size = static_cast<int>(numbers_.size());
      const auto ranks = (*this)(ranks_of(step["ranks"].get<std::string>(), world_size));
      if (ranks.empty()) {
        for (const Json& other : step.value("else", Json::array())) result.push_back(other);
        return;
      }
      step["ranks"] = text_of(ranks);
    }
    result.push_back(std::move(step));
  }

  // A sum of equal values, or of the default ones (rank + 1).
  static double sum_of(const Json& step, int ranks) {
    return step.contains("value") ? step["value"].get<double>() * ranks : 0.5 * ranks * (ranks + 1);
  }

  void expect_anew(Json& step) const {
    const bool is_message = step.contains("to") || step.contains("from");
    const bool is_collective = find_operation(step.at("do").get<std::string>()).has_value();
    if (!step.contains("expect") || is_message || !is_collective) return;
    const bool has_value = step.contains("value");
    const bool are_numbers =
        step["expect"].is_number() && (!has_value || step["value"].is_number());
    if (are_numbers && has_value && step["value"] == 0 && step["expect"] == 0) return;
    const bool is_of_all = !step.contains("group");
    if (are_numbers && is_of_all &&
        step["expect"] == sum_of(step, static_cast<int>(numbers_.size()))) {
      step["expect"] = sum_of(step, kept_);
    } else {
      step.erase("expect");
    }
  }

  // The peer, or the first one that is kept in this direction.
  int peer_of(int rank, int direction) const {
    const int world_size = static_cast<int>(numbers_.size());
    while (lost_peer_ == LostPeer::kSkip && (*this)(rank) == kLost) {
      rank = (rank + direction + world_size) % world_size;
    }
    return (*this)(rank);
  }

  std::vector<int> numbers_;  // by rank
  int kept_;
  LostPeer lost_peer_;
};

// One rank's steps as one list.
class Flattening {
 public:
  Flattening(int rank, int local_rank, std::size_t steps_max)
      : rank_(rank), local_rank_(local_rank), steps_max_(steps_max) {}

  // Nothing when there are too many.
  std::optional<Json> run(const Json& steps) {
    Json result = Json::array();
    add(steps, std::nullopt, result);
    if (count_ > steps_max_) return std::nullopt;
    return result;
  }

 private:
  void add(const Json& steps, std::optional<std::int64_t> turn, Json& result) {
    for (const Json& step : steps) {
      if (count_ > steps_max_) return;
      add_step(step, turn, result);
    }
  }

  void add_step(const Json& step, std::optional<std::int64_t> turn, Json& result) {
    ++count_;
    const std::string name = step.at("do").get<std::string>();
    if (name == "repeat") {
      const auto times = step.at("times").get<std::int64_t>();
      for (std::int64_t i = 0; i < times && count_ <= steps_max_; ++i) {
        ++count_;  // turns without steps end too
        add(step.at("steps"), i, result);
      }
    } else if (name == "if") {
      add_branch(step, turn, result);
    } else {
      result.push_back(step);
      if (!step.contains("each")) return;
      Json each = Json::array();
      add(step.at("each"), std::nullopt, each);
      result.back()["each"] = std::move(each);
    }
  }

  // Takes from `branch` the condition that is known; false: it does not hold.
  static bool settle(Json& branch, const char* key, std::optional<std::int64_t> number) {
    if (!number || !branch.contains(key)) return true;
    const auto set = RankSet::parse(branch[key].get<std::string>(), kNoEnd, "number");
    branch.erase(key);
    return set.contains(*number);
  }

  void add_branch(Json branch, std::optional<std::int64_t> turn, Json& result) {
    const Json otherwise = branch.value("else", Json::array());
    const bool can_hold = settle(branch, "ranks", rank_) &&
                          settle(branch, "local_ranks", local_rank_) &&
                          settle(branch, "turns", turn);
    if (!can_hold) return add(otherwise, turn, result);
    if (!branch.contains("turns") && !branch.contains("result")) {
      return add(branch.at("then"), turn, result);
    }
    Json then = Json::array();
    add(branch.at("then"), turn, then);
    branch["then"] = std::move(then);
    if (branch.contains("else")) {
      Json flat = Json::array();
      add(otherwise, turn, flat);
      branch["else"] = std::move(flat);
    }
    result.push_back(std::move(branch));
  }

  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

  int rank_;
  int local_rank_;
  std::size_t steps_max_;
  std::size_t count_ = 0;
};

// Steps a line each, as deep as they lie.
void append_steps(std::string& text, const Json& steps, int depth) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    text += fmt::format("{}\n{:{}}{}", i == 0 ? "" : ",", "", 2 * depth, steps[i].dump());
  }
}

}  // namespace

RankGroups groups_of(const Json& document) {
  const int world_size = document.at("world_size").get<int>();
  RankGroups groups;
  std::vector<char> named(static_cast<std::size_t>(world_size), 0);
  const Json* others = nullptr;
  for (const auto& [key, steps] : document.at("programs").items()) {
    if (key == "*") {
      others = &steps;
      continue;
    }
    groups.push_back({ranks_of(key, world_size), steps});
    for (const int rank : groups.back().ranks) named[static_cast<std::size_t>(rank)] = 1;
  }
  if (others == nullptr) return groups;
  RankGroup rest{{}, *others};
  for (int rank = 0; rank < world_size; ++rank) {
    if (named[static_cast<std::size_t>(rank)] == 0) rest.ranks.push_back(rank);
  }
  if (!rest.ranks.empty()) groups.push_back(std::move(rest));
  return groups;
}

Json with_groups(const Json& document, const RankGroups& groups) {
  std::map<std::string, RankGroup> merged;  // by the steps' text
  for (const RankGroup& group : groups) {
    RankGroup& same = merged[group.steps.dump()];
    same.steps = group.steps;
    same.ranks.insert(same.ranks.end(), group.ranks.begin(), group.ranks.end());
  }
  std::vector<RankGroup*> order;
  for (auto& [text, group] : merged) {
    std::ranges::sort(group.ranks);
    order.push_back(&group);
  }
  std::ranges::sort(order, {}, [](const RankGroup* group) { return group->ranks.front(); });
  Json programs = Json::object();
  for (const RankGroup* group : order) {
    programs[order.size() == 1 ? "*" : text_of(group->ranks)] = group->steps;
  }
  Json result = document;
  result["programs"] = std::move(programs);
  return result;
}

Json keep_ranks(const Json& document, const std::vector<int>& kept, LostPeer lost_peer) {
  const Renumbering renumber(document.at("world_size").get<int>(), kept, lost_peer);
  RankGroups groups;
  for (const RankGroup& group : groups_of(document)) {
    RankGroup fewer{renumber(group.ranks), Json()};
    if (fewer.ranks.empty()) continue;
    fewer.steps = renumber.steps(group.steps);
    groups.push_back(std::move(fewer));
  }
  Json result = with_groups(document, groups);
  result["world_size"] = kept.size();
  if (result.contains("ranks_per_node")) {
    const int per_node = document["ranks_per_node"].get<int>();
    result["ranks_per_node"] = std::min<int>(per_node, static_cast<int>(kept.size()));
  }
  if (result.contains("nodes")) {
    const Placement placement = placement_of(document);
    result["nodes"] = Json::array();
    for (const int rank : kept) result["nodes"].push_back(node_of(placement, rank));
  }
  if (result.contains("faults")) {
    Json faults = Json::array();
    for (const Json& text : document.at("faults")) {
      const auto fault = renumber.fault(sim::parse_fault(text.get<std::string>()));
      if (fault) faults.push_back(sim::to_string(*fault));
    }
    result["faults"] = std::move(faults);
  }
  if (result.contains("groups")) {
    Json& groups = result["groups"] = Json::object();
    for (const auto& [name, ranks] : document.at("groups").items()) {
      const std::vector<int> fewer_ranks = renumber(ranks.get<std::vector<int>>());
      if (!fewer_ranks.empty()) groups[name] = fewer_ranks;
    }
  }
  Json& expect = result["expect"];
  if (expect.contains("culprits")) {
    expect["culprits"] = renumber(expect["culprits"].get<std::vector<int>>());
  }
  return result;
}

Json flatten(const Json& document, std::size_t steps_max) {
  RankGroups flat;
  const Placement placement = placement_of(document);
  for (const RankGroup& group : groups_of(document)) {
    for (const int rank : group.ranks) {
      Flattening flattening(rank, local_rank_of(placement, rank), steps_max);
      auto steps = flattening.run(group.steps);
      if (!steps) return document;
      flat.push_back({{rank}, std::move(*steps)});
    }
  }
  return with_groups(document, flat);
}

void for_each_list(Json& steps, const std::function<void(Json& list)>& action) {
  action(steps);
  for (Json& step : steps) {
    for (const char* key : kStepLists) {
      if (step.contains(key)) for_each_list(step[key], action);
    }
  }
}

std::string to_text(const Json& document) {
  std::string text = "{";
  bool is_first = true;
  for (const auto& [key, value] : document.items()) {
    text += fmt::format("{}\n  {}: ", is_first ? "" : ",", Json(key).dump());
    is_first = false;
    if (key != "programs") {
      text += value.dump();
      continue;
    }
    text += "{";
    bool is_first_program = true;
    for (const auto& [ranks, steps] : value.items()) {
      text += fmt::format("{}\n    {}: [", is_first_program ? "" : ",", Json(ranks).dump());
      is_first_program = false;
      append_steps(text, steps, 3);
      text += "]";
    }
    text += "\n  }";
  }
  return text + "\n}\n";
}

}  // namespace ddproof::scenario
