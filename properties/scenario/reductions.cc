#include "properties/scenario/reductions.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "properties/scenario/parse_call.h"
#include "properties/scenario/parse_steps.h"
#include "properties/scenario/rank_set.h"
#include "properties/scenario/scenario_edit.h"
#include "simulator/fault_plan.h"

namespace ddproof::scenario {
namespace {

// A step that looks so, and the how manieth of its program.
using SharedStep = std::pair<std::string, std::size_t>;

// Calls `visit` for each step, the outer ones first.
template <class Visit>
void for_each_step(Json& steps, const Visit& visit) {
  for_each_list(steps, [&](Json& list) {
    for (Json& step : list) visit(step);
  });
}

std::vector<SharedStep> shared_steps(const Json& document) {
  std::vector<SharedStep> result;
  std::set<SharedStep> seen;
  for (RankGroup& group : groups_of(document)) {
    std::map<std::string, std::size_t> count;
    for_each_step(group.steps, [&](const Json& step) {
      std::string text = step.dump();
      const SharedStep shared{text, count[text]++};
      if (seen.insert(shared).second) result.push_back(shared);
    });
  }
  return result;
}

// Takes out the steps for which `is_out` is true, which is asked in the order of for_each_step().
template <class IsOut>
void take_out(Json& steps, const IsOut& is_out) {
  std::set<const Json*> out;  // steps that lie in others stay where they are
  for_each_step(steps, [&](const Json& step) {
    if (is_out(step)) out.insert(&step);
  });
  for_each_list(steps, [&](Json& list) {
    Json kept = Json::array();
    for (Json& step : list) {
      if (!out.contains(&step)) kept.push_back(std::move(step));
    }
    list = std::move(kept);
  });
}

// The document with each step that looks like `text` replaced by `steps`.
Json with_steps_instead(const Json& document, const std::string& text, const Json& steps) {
  RankGroups groups = groups_of(document);
  for (RankGroup& group : groups) {
    for_each_list(group.steps, [&](Json& list) {
      Json changed = Json::array();
      for (Json& step : list) {
        if (step.dump() != text) {
          changed.push_back(std::move(step));
          continue;
        }
        for (const Json& instead : steps) changed.push_back(instead);
      }
      list = std::move(changed);
    });
  }
  return with_groups(document, groups);
}

template <class Part>
std::set<Part> chosen(const std::vector<Part>& all, const Parts& parts) {
  std::set<Part> result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (parts[i]) result.insert(all[i]);
  }
  return result;
}

// A message: sender, receiver, tag, and the how manieth of these.
using Message = std::tuple<int, int, std::int64_t, std::size_t>;

// The message of each send and receive of a rank, in the order of for_each_step().
class MessageCounter {
 public:
  explicit MessageCounter(int rank) : rank_(rank) {}

  std::optional<Message> message_of(const Json& step) {
    const bool sends = step.at("do") == "send";
    if (!sends && step.at("do") != "recv") return std::nullopt;
    const int peer = step.at(sends ? "to" : "from").get<int>();
    const auto tag = step.value("tag", std::int64_t{0});
    const int from = sends ? rank_ : peer;
    const int to = sends ? peer : rank_;
    return Message{from, to, tag, counts_[{sends, from, to, tag}]++};
  }

 private:
  int rank_;
  std::map<std::tuple<bool, int, int, std::int64_t>, std::size_t> counts_;
};

RankGroups one_by_one(const Json& document) {
  RankGroups result;
  for (const RankGroup& group : groups_of(document)) {
    for (const int rank : group.ranks) result.push_back({{rank}, group.steps});
  }
  return result;
}

std::vector<Message> messages(const Json& document) {
  std::set<Message> all;
  for (RankGroup& group : one_by_one(document)) {
    MessageCounter counter(group.ranks.front());
    for_each_step(group.steps, [&](const Json& step) {
      if (const auto message = counter.message_of(step)) all.insert(*message);
    });
  }
  return {all.begin(), all.end()};
}

// What may stand in place of a member's value.
std::vector<Json> smaller_values(const Json& value) {
  if (value.is_number_integer() && value > 1) {
    const auto number = value.get<std::int64_t>();
    return {Json(1), Json(number / 2), Json(number - 1)};
  }
  if (value.is_array() && value.size() > 1 && !value.front().is_object()) {
    const auto half = static_cast<std::ptrdiff_t>(value.size() / 2);
    return {Json::array({value.front()}),
            Json(std::vector<Json>(value.begin(), value.begin() + half))};
  }
  return {};
}

// Lists of steps that may stand in the place of one.
std::vector<Json> smaller_steps(const Json& step, const Keys& fixed) {
  std::vector<Json> result;
  for (const char* key : kStepLists) {
    if (step.contains(key)) result.push_back(step[key]);
  }
  for (const auto& [key, value] : step.items()) {
    if (key == "do" || fixed.contains(key)) continue;
    Json changed = step;
    changed.erase(key);
    result.push_back(Json::array({changed}));
    for (const Json& smaller : smaller_values(value)) {
      changed = step;
      changed[key] = smaller;
      result.push_back(Json::array({changed}));
    }
  }
  return result;
}

}  // namespace

std::vector<std::string> optional_keys(const Json& document) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : document.items()) {
    const bool is_needed =
        key == "fact" || key == "world_size" || key == "programs" || key == "expect";
    if (!is_needed) keys.push_back(key);
  }
  return keys;
}

Json without_key(const Json& document, const std::string& key) {
  Json result = document;
  result.erase(key);
  return result;
}

std::vector<std::string> step_keys(const Json& document, const Keys& fixed) {
  std::set<std::string> keys;
  for (RankGroup& group : groups_of(document)) {
    for_each_step(group.steps, [&](const Json& step) {
      for (const auto& [key, value] : step.items()) {
        if (key != "do" && !fixed.contains(key)) keys.insert(key);
      }
    });
  }
  return {keys.begin(), keys.end()};
}

Json without_step_key(const Json& document, const std::string& key) {
  RankGroups groups = groups_of(document);
  for (RankGroup& group : groups) {
    for_each_step(group.steps, [&](Json& step) { step.erase(key); });
  }
  return with_groups(document, groups);
}

std::size_t count_shared_steps(const Json& document) { return shared_steps(document).size(); }

Json without_shared_steps(const Json& document, const Parts& parts) {
  const std::set<SharedStep> out = chosen(shared_steps(document), parts);
  RankGroups groups = groups_of(document);
  for (RankGroup& group : groups) {
    std::map<std::string, std::size_t> count;
    take_out(group.steps, [&](const Json& step) {
      std::string text = step.dump();
      const std::size_t number = count[text]++;
      return out.contains({std::move(text), number});
    });
  }
  return with_groups(document, groups);
}

std::size_t count_steps_of_groups(const Json& document) {
  std::size_t count = 0;
  for (RankGroup& group : groups_of(document)) {
    for_each_step(group.steps, [&](const Json&) { ++count; });
  }
  return count;
}

Json without_steps_of_groups(const Json& document, const Parts& parts) {
  RankGroups groups = groups_of(document);
  std::size_t at = 0;
  for (RankGroup& group : groups) {
    take_out(group.steps, [&](const Json&) { return parts[at++]; });
  }
  return with_groups(document, groups);
}

std::size_t count_messages(const Json& document) { return messages(document).size(); }

Json without_messages(const Json& document, const Parts& parts) {
  const std::set<Message> out = chosen(messages(document), parts);
  RankGroups groups = one_by_one(document);
  for (RankGroup& group : groups) {
    MessageCounter counter(group.ranks.front());
    take_out(group.steps, [&](const Json& step) {
      const auto message = counter.message_of(step);
      return message && out.contains(*message);
    });
  }
  return with_groups(document, groups);
}

std::size_t count_groups(const Json& document) {
  return document.value("groups", Json::object()).size();
}

Json without_groups(const Json& document, const Parts& parts) {
  Json result = document;
  result["groups"] = Json::object();
  std::size_t at = 0;
  for (const auto& [name, ranks] : document.at("groups").items()) {
    if (!parts[at++]) result["groups"][name] = ranks;
  }
  return result;
}

std::set<int> ranks_of_faults(const Json& document) {
  std::set<int> ranks;
  for (const Json& text : document.value("faults", Json::array())) {
    const sim::Fault fault = sim::parse_fault(text.get<std::string>());
    if (fault.kind == sim::FaultKind::kPartition) continue;
    ranks.insert(fault.rank);
    if (strikes_a_message(fault.kind)) ranks.insert(fault.peer);
  }
  return ranks;
}

Json without_faults(const Json& document, const Parts& parts) {
  Json kept = Json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]) kept.push_back(document.at("faults")[i]);
  }
  Json result = document;
  result["faults"] = std::move(kept);
  return result;
}

std::vector<Json> with_earlier_faults(const Json& document, std::uint64_t earlier_max) {
  std::vector<Json> result;
  const Json faults = document.value("faults", Json::array());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const sim::Fault fault = sim::parse_fault(faults[i].get<std::string>());
    const auto add = [&](const sim::Fault& earlier) {
      // A kind that does not use the field looks the same.
      if (to_string(earlier) == faults[i]) return;
      result.push_back(document);
      result.back()["faults"][i] = to_string(earlier);
    };
    sim::Fault earlier = fault;
    for (std::uint64_t step = 0; step < earlier_max && earlier.number > 1; ++step) {
      --earlier.number;
      add(earlier);
    }
    earlier = fault;
    while (earlier.start > 0) {
      earlier.start /= 2;
      add(earlier);
    }
  }
  return result;
}

Json halved(const Json& document, bool scales_turns) {
  RankGroups groups = groups_of(document);
  for (RankGroup& group : groups) {
    for_each_step(group.steps, [&](Json& step) {
      for (const char* key : {"times", "length"}) {
        if (step.contains(key)) step[key] = (step[key].get<std::int64_t>() + 1) / 2;
      }
      if (step.contains("batches")) {
        const Json& all = step["batches"];
        const auto half = static_cast<std::ptrdiff_t>((all.size() + 1) / 2);
        step["batches"] = std::vector<Json>(all.begin(), all.begin() + half);
      }
      if (scales_turns && step.contains("turns")) {
        const auto turns = RankSet::parse(step["turns"].get<std::string>(), kTimesMax, "turn");
        step["turns"] = turns.half();
      }
    });
  }
  return with_groups(document, groups);
}

Json taken_once(const Json& document) {
  RankGroups groups = groups_of(document);
  for (RankGroup& group : groups) {
    for_each_step(group.steps, [](Json& step) {
      if (step.value("times", 0) > 1) step["times"] = 1;
    });
  }
  return with_groups(document, groups);
}

Json zeroed(const Json& document) {
  const std::vector<std::string> keys = step_keys(document, {});
  if (std::ranges::find(keys, "expect") == keys.end()) return document;
  RankGroups groups = groups_of(document);
  for (RankGroup& group : groups) {
    for_each_step(group.steps, [](Json& step) {
      const std::string name = step.at("do").get<std::string>();
      const bool has_data = find_operation(name) && name.find("barrier") == std::string::npos;
      if (has_data && name != "recv") step["value"] = 0;
      if (has_data && step.contains("expect")) step["expect"] = 0;
    });
  }
  return with_groups(document, groups);
}

bool any_smaller_step(const Json& document, const Keys& fixed,
                      const std::function<bool(const Json&)>& attempt) {
  std::set<std::string> seen;
  for (const SharedStep& shared : shared_steps(document)) {
    if (!seen.insert(shared.first).second) continue;
    for (const Json& instead : smaller_steps(Json::parse(shared.first), fixed)) {
      if (attempt(with_steps_instead(document, shared.first, instead))) return true;
    }
  }
  return false;
}

}  // namespace ddproof::scenario
