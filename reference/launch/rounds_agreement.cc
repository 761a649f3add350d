// How nodes look after each other and decide together: the second half of Rounds.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "backends/api/error.h"
#include "reference/launch/environment.h"
#include "reference/launch/node_store.h"
#include "reference/launch/rounds_survey.h"

namespace ddproof {
namespace {

// How often a leader looks whether the round can be complete, at least.
constexpr Duration kLookInterval = std::chrono::seconds(1);

// Of a job whose nodes cannot form a world: as for wrong flags.
constexpr int kWrongWorldStatus = 2;

RoundOutcome end_of(int status, const std::string& text) {
  return {.round = std::nullopt, .end = {status, text}};
}

}  // namespace

Rounds::Wake Rounds::tend_until(const std::string& goal, TimePoint deadline) {
  for (;;) {
    TimePoint look_at = deadline_after(runtime_.now(), options_.keep_alive_interval);
    if (leader_ == self_.id && member_ids_.empty()) {
      look_at = std::min({look_at, decide_at_, deadline_after(runtime_.now(), kLookInterval)});
    }
    const KeyWatch::Outcome seen = watch(watched_keys(goal), std::min(look_at, deadline));
    if (seen == KeyWatch::Outcome::kEnded) return Wake::kCancelled;
    const auto values = prompt_store()->multi_get({goal, key("gone", self_.id)});
    if (values[0]) return Wake::kGoal;
    if (values[1]) return Wake::kGivenUp;
    if (runtime_.now() >= deadline) return Wake::kTimeout;
    look_after_leader();
    if (leader_ == self_.id) look_after_all();
  }
}

std::vector<std::string> Rounds::watched_keys(const std::string& goal) const {
  std::vector<std::string> keys = {goal, key("gone", self_.id)};
  if (leader_ != self_.id) {
    keys.push_back(key("gone", leader_));
  } else {
    for (const int id : member_ids_) {
      if (id != self_.id) keys.push_back(key("gone", id));
    }
  }
  return keys;
}

KeyWatch::Outcome Rounds::watch(std::vector<std::string> keys, TimePoint deadline) {
  KeyWatch* watch = nullptr;
  {
    MonitorLock lock(*lock_);
    if (cancelled_) return KeyWatch::Outcome::kEnded;
    watch = watch_.get();
  }
  if (watch == nullptr || keys != watched_) {
    std::unique_ptr<KeyWatch> next = store_.watch(keys);
    watched_ = std::move(keys);
    MonitorLock lock(*lock_);
    watch_.swap(next);
    watch = watch_.get();
    if (cancelled_) return KeyWatch::Outcome::kEnded;
  }
  return watch->wait(std::max(deadline - runtime_.now(), Duration::zero()));
}

// Also while workers stop, which may take longer than others wait for a sign of life.
void Rounds::keep_alive() {
  for (;;) {
    int id = 0;
    {
      MonitorLock lock(*lock_);
      const TimePoint next = deadline_after(runtime_.now(), options_.keep_alive_interval);
      const WaitReason reason{"the next heartbeat", CallSite::current(), {}, true, true};
      while (!cancelled_ && lock_->wait(next, reason)) {
      }
      if (cancelled_) return;
      id = beating_id_;
    }
    try {
      prompt_store()->add(key("beat", id), 1);
    } catch (const CommError&) {
      return;  // the store is gone: whoever joins or waits learns of it
    }
  }
}

void Rounds::look_after_leader() {
  while (leader_ != self_.id) {
    const auto store = prompt_store();
    const auto values = store->multi_get({key("gone", leader_), key("beat", leader_)});
    if (!values[0] && !is_silent(leader_, values[1])) return;
    if (!values[0]) give_up(leader_);
    leader_ = std::stoi(store->compare_set(key("leader", number_), std::to_string(leader_),
                                           std::to_string(self_.id)));
  }
}

bool Rounds::is_silent(int id, const std::optional<std::string>& beat) {
  const auto [last, is_new] = beats_.try_emplace(id, Beat{beat, runtime_.now()});
  if (last->second.value != beat) last->second = {beat, runtime_.now()};
  return runtime_.now() - last->second.seen_at > patience();
}

void Rounds::give_up(int id) {
  prompt_store()->compare_set(
      key("gone", id), "",
      fmt::format("it missed {} heartbeats, one each {} s", options_.keep_alive_attempts,
                  std::chrono::duration<double>(options_.keep_alive_interval).count()));
}

void Rounds::look_after_all() {
  Survey seen = survey();
  give_up_silent(seen);
  if (!seen.decided) return decide(seen);
  if (!seen.round) return;
  for (const Node& member : seen.round->members) {
    const auto& gone = seen.of(member.id).gone;
    if (gone) return end_round(RoundEnd::Kind::kLost, 0, lost_text(member, *gone));
  }
}

Rounds::Survey Rounds::survey() {
  const auto store = prompt_store();
  const auto count_of = [](const std::optional<std::string>& nodes) { return std::stoi(*nodes); };
  int ids = 0;
  std::vector<std::optional<std::string>> values;
  // One more node may have come meanwhile, and be a member already.
  for (int count = count_of(store->try_get(key("nodes"))); count != ids;
       count = count_of(values[0])) {
    ids = count;
    std::vector<std::string> keys = {key("nodes"), key("outcome", number_),
                                     key("outcome", number_ - 1), key("over", number_ - 1)};
    for (int id = 1; id <= ids; ++id) {
      keys.push_back(key("beat", id));
      keys.push_back(key("gone", id));
      keys.push_back(key("join", number_, id));
    }
    values = store->multi_get(keys);
  }
  Survey survey;
  survey.decided = values[1].has_value();
  if (values[1]) survey.round = parse_outcome(*values[1]).round;
  if (values[2]) survey.last = parse_outcome(*values[2]).round;
  if (values[3]) survey.last_end = parse_round_end(*values[3]);
  for (std::size_t at = 4; at < values.size(); at += 3) {
    Survey::Seen node{std::move(values[at]), std::move(values[at + 1]), std::nullopt};
    if (values[at + 2]) node.joined = parse_node(*values[at + 2]);
    survey.nodes.push_back(std::move(node));
  }
  return survey;
}

// Those that died without a word, as nobody else looks at them.
void Rounds::give_up_silent(Survey& survey) {
  for (int id = 1; id <= static_cast<int>(survey.nodes.size()); ++id) {
    if (id == self_.id || !survey.matters(id) || !is_silent(id, survey.of(id).beat)) continue;
    give_up(id);
    survey.of(id).gone = prompt_store()->try_get(key("gone", id));
  }
}

void Rounds::decide(const Survey& survey) {
  const std::optional<RoundOutcome> outcome = outcome_of(survey);
  if (!outcome) return;
  const auto store = prompt_store();
  store->compare_set(key("outcome", number_), "", to_record(*outcome));
  if (outcome->round) store->set(key("newest"), std::to_string(number_));
}

std::optional<RoundOutcome> Rounds::outcome_of(const Survey& survey) {
  Round next{.number = number_};
  if (survey.last) {
    bool lost_any = false;
    next.reason = survey.last_end->text;
    for (const Node& member : survey.last->members) {
      const Survey::Seen& seen = survey.of(member.id);
      if (!seen.joined && !seen.gone) return std::nullopt;  // it still stops its workers
      if (seen.joined && !(seen.gone && options_.is_static())) continue;
      lost_any = true;
      next.reason = lost_text(member, *seen.gone);
    }
    if (lost_any && options_.is_static()) return end_of(kLostNodeStatus, next.reason);
    const bool failed = survey.last_end->kind == RoundEnd::Kind::kFailed;
    next.restarts = survey.last->restarts + (failed && !lost_any ? 1 : 0);
    if (next.restarts > options_.max_restarts) {
      return end_of(survey.last_end->status, survey.last_end->text);
    }
  }
  next.members = survey.present();
  if (!are_enough(next.members.size())) return std::nullopt;
  choose_members(next.members);
  const std::string wrong = wrong_with(next);
  if (!wrong.empty()) return end_of(kWrongWorldStatus, wrong);
  return RoundOutcome{.round = std::move(next), .end = {}};
}

// At nodes_max at once, with nodes_min after the last call.
bool Rounds::are_enough(std::size_t present) {
  if (present >= static_cast<std::size_t>(options_.nodes_max)) return true;
  if (present < static_cast<std::size_t>(options_.nodes_min)) {
    decide_at_ = kForever;
    return false;
  }
  if (decide_at_ == kForever) decide_at_ = deadline_after(runtime_.now(), options_.last_call);
  return runtime_.now() >= decide_at_;
}

// Those that came first, by group rank.
void Rounds::choose_members(std::vector<Node>& nodes) const {
  nodes.resize(std::min(nodes.size(), static_cast<std::size_t>(options_.nodes_max)));
  std::ranges::sort(nodes, [](const Node& a, const Node& b) {
    return std::tie(a.node_rank, a.host, a.id) < std::tie(b.node_rank, b.host, b.id);
  });
}

std::string Rounds::wrong_with(const Round& round) const {
  if (round.world_size() > kWorldSizeMax) {
    return fmt::format("{} nodes have {} ranks; allowed: at most {}", round.group_size(),
                       round.world_size(), kWorldSizeMax);
  }
  const Node& master = round.master();
  const auto far = std::ranges::find_if(round.members,
                                        [&](const Node& node) { return node.host != master.host; });
  if (far == round.members.end() || !is_loopback(master.address)) return "";
  return fmt::format(
      "ranks would meet at {} on {}, which {} cannot reach; give {} an address that "
      "other hosts know",
      master.address, master.host, far->host, master.host);
}

}  // namespace ddproof
