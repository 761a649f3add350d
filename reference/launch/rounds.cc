#include "reference/launch/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/error.h"
#include "reference/launch/rounds_survey.h"

namespace ddproof {
namespace {

constexpr const char* kProcessEnded = "its process ended";
constexpr const char* kLeft = "it left";

long seconds_of(Duration duration) {
  return static_cast<long>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

Rounds::Rounds(Store& store, Runtime& runtime, RoundsOptions options)
    : store_(store),
      runtime_(runtime),
      options_(std::move(options)),
      lock_(runtime.make_monitor()) {
  DDPROOF_CHECK(options_.nodes_min >= 1 && options_.nodes_min <= options_.nodes_max);
  DDPROOF_CHECK(options_.node_rank < options_.nodes_max);
  self_ = {.host = options_.host,
           .pid = options_.pid,
           .local_world_size = options_.local_world_size,
           .node_rank = options_.node_rank};
}

Rounds::~Rounds() {
  cancel();
  if (heartbeat_) heartbeat_->join();
}

std::string Rounds::key(const char* name, int number) const {
  return key(fmt::format("{}/{}", name, number));
}

std::string Rounds::key(const char* name, int number, int id) const {
  return key(fmt::format("{}/{}/{}", name, number, id));
}

std::unique_ptr<Store> Rounds::prompt_store() const {
  return store_.answering_by(deadline_after(runtime_.now(), patience()));
}

std::optional<RoundOutcome> Rounds::join(const std::function<Meeting()>& open_meeting) {
  const TimePoint deadline = deadline_after(runtime_.now(), options_.join_timeout);
  for (;;) {
    if (self_.id == 0) enroll();
    if (auto ended = find_round(deadline)) return ended;
    {
      MonitorLock lock(*lock_);
      if (cancelled_) return std::nullopt;
    }
    const Meeting meeting = open_meeting();
    self_.address = meeting.address;
    self_.port = meeting.port;
    enter();
    switch (tend_until(key("outcome", number_), deadline)) {
      case Wake::kCancelled: return std::nullopt;
      case Wake::kTimeout: give_up_waiting();
      case Wake::kGivenUp: self_.id = 0; continue;
      case Wake::kGoal: break;
    }
    RoundOutcome outcome = read_outcome();
    if (!outcome.round || !member_ids_.empty()) return outcome;
  }
}

void Rounds::enroll() {
  if (!std::exchange(agreed_, true)) agree_on_settings();
  const auto id = store_.add(key("nodes"), 1);
  if (id > kNodesEverMax) {
    throw ConfigError(fmt::format("job \"{}\" has had {} nodes; give it another --rdzv-id",
                                  options_.run_id, kNodesEverMax));
  }
  self_.id = static_cast<int>(id);
  if (options_.nodes_max > 1) {
    store_.set_last_will(key("gone", self_.id), kProcessEnded);
    MonitorLock lock(*lock_);
    beating_id_ = self_.id;
    if (!heartbeat_) heartbeat_ = runtime_.spawn("heartbeat", [this] { keep_alive(); });
  }
  if (options_.is_static()) claim_node_rank();
  if (number_ > 1) return;  // we know where the others are
  const auto newest = store_.try_get(key("newest"));
  if (newest) number_ = std::max(number_, std::stoi(*newest));
}

void Rounds::agree_on_settings() {
  const std::string settings = fmt::format(
      "--nnodes {}:{}, --max-restarts {}, --rdzv-backend {}", options_.nodes_min,
      options_.nodes_max, options_.max_restarts, options_.is_static() ? "static" : "c10d");
  const std::string mine = fmt::format("{} {}", options_.host, settings);
  const std::string first = store_.compare_set(key("settings"), "", mine);
  const auto blank = first.find(' ');
  if (first.substr(blank + 1) == settings) return;
  throw ConfigError(fmt::format(
      "job \"{}\" has {} on {}, which came first, and {} on {}; start all "
      "nodes with the same flags, or give each job an --rdzv-id",
      options_.run_id, first.substr(blank + 1), first.substr(0, blank), settings, options_.host));
}

void Rounds::claim_node_rank() {
  const std::string mine = to_record(self_);
  for (std::string holder;;) {
    holder = store_.compare_set(key("node_rank", options_.node_rank), holder, mine);
    if (holder == mine) return;
    const Node other = parse_node(holder);
    if (store_.check({key("gone", other.id)})) continue;
    throw ConfigError(
        fmt::format("--node-rank {} is given to two nodes of job \"{}\": {}, which "
                    "came first, and {}; give every node a number of its own",
                    options_.node_rank, options_.run_id, describe(other), describe(self_)));
  }
}

std::optional<RoundOutcome> Rounds::find_round(TimePoint deadline) {
  for (;;) {
    const auto values = prompt_store()->multi_get({key("over", number_), key("outcome", number_)});
    if (values[0]) {
      if (parse_round_end(*values[0]).kind == RoundEnd::Kind::kSucceeded) return RoundOutcome{};
      if (values[1]) expected_ = parse_outcome(*values[1]).round->members.size();
      ++number_;
      continue;
    }
    if (!values[1]) return std::nullopt;
    const RoundOutcome outcome = parse_outcome(*values[1]);
    if (!outcome.round) return outcome;
    if (auto ended = enter_late(*outcome.round, deadline)) return ended;
  }
}

std::optional<RoundOutcome> Rounds::enter_late(const Round& round, TimePoint deadline) {
  std::vector<std::string> keys = {key("done", number_)};
  for (const Node& member : round.members) keys.push_back(key("gone", member.id));
  const auto values = prompt_store()->multi_get(keys);
  for (int i = 0; i < round.group_size(); ++i) {
    const auto& why = values[static_cast<std::size_t>(i + 1)];
    if (!why) continue;
    end_round(RoundEnd::Kind::kLost, 0,
              lost_text(round.members[static_cast<std::size_t>(i)], *why));
    return std::nullopt;
  }
  if (round.group_size() == options_.nodes_max) {
    throw ConfigError(fmt::format("job \"{}\" has all of its {} nodes ({}); {} is one too many",
                                  options_.run_id, round.group_size(), hosts_of(round.members),
                                  describe(self_)));
  }
  if (!values[0]) {
    end_round(RoundEnd::Kind::kJoined, 0, describe(self_) + " joined");
    return std::nullopt;
  }
  leader_ = self_.id;  // there is nobody to look after
  switch (tend_until(key("over", number_), deadline)) {
    case Wake::kTimeout: give_up_waiting();
    case Wake::kGivenUp: enroll(); return std::nullopt;
    case Wake::kCancelled:
    case Wake::kGoal: return std::nullopt;
  }
  return std::nullopt;
}

void Rounds::enter() {
  member_ids_.clear();
  decide_at_ = kForever;
  const auto store = prompt_store();
  store->set(key("join", number_, self_.id), to_record(self_));
  leader_ = std::stoi(store->compare_set(key("leader", number_), "", std::to_string(self_.id)));
  const auto joined = static_cast<std::size_t>(store->add(key("joins", number_), 1));
  const bool may_be_last = joined >= static_cast<std::size_t>(options_.nodes_max) ||
                           (expected_ > 0 && joined >= expected_);
  if (may_be_last || leader_ == self_.id) look_after_all();
}

RoundOutcome Rounds::read_outcome() {
  RoundOutcome outcome = parse_outcome(*prompt_store()->try_get(key("outcome", number_)));
  if (!outcome.round) return outcome;
  Round& round = *outcome.round;
  round.number = number_;
  expected_ = round.members.size();
  const auto self = std::ranges::find(round.members, self_.id, &Node::id);
  if (self == round.members.end()) return outcome;
  round.group_rank = static_cast<int>(self - round.members.begin());
  for (const Node& member : round.members) member_ids_.push_back(member.id);
  return outcome;
}

void Rounds::give_up_waiting() {
  const std::vector<Node> present = survey().present();
  throw CommError(
      CommErrorKind::kTimeout,
      fmt::format("job \"{}\", round {}: {} of {}{} nodes came within {} s ({}); start "
                  "the others with the same endpoint and --rdzv-id",
                  options_.run_id, number_, present.size(),
                  options_.nodes_min < options_.nodes_max ? "at least " : "", options_.nodes_min,
                  seconds_of(options_.join_timeout), hosts_of(present)));
}

std::optional<RoundEnd> Rounds::wait_over() {
  switch (tend_until(key("over", number_), kForever)) {
    case Wake::kGoal: return parse_round_end(*prompt_store()->try_get(key("over", number_)));
    case Wake::kGivenUp:
      self_.id = 0;
      return RoundEnd{RoundEnd::Kind::kLost, 0, "the others gave this node up"};
    case Wake::kCancelled:
    case Wake::kTimeout: break;
  }
  return std::nullopt;
}

void Rounds::succeed() {
  const auto done = store_.add(key("done", number_), 1);
  if (done == static_cast<std::int64_t>(expected_)) {
    end_round(RoundEnd::Kind::kSucceeded, 0, "");
  }
}

void Rounds::fail(int status, const std::string& text) {
  end_round(RoundEnd::Kind::kFailed, status, text);
}

void Rounds::end_round(RoundEnd::Kind kind, int status, const std::string& text) {
  prompt_store()->compare_set(key("over", number_), "", to_record(RoundEnd{kind, status, text}));
}

void Rounds::leave() {
  cancel();
  if (self_.id == 0) return;
  try {
    const auto store = prompt_store();
    store->set(key("gone", self_.id), kLeft);
    if (!member_ids_.empty()) end_round(RoundEnd::Kind::kLost, 0, lost_text(self_, kLeft));
  } catch (const CommError&) {
  }
}

void Rounds::cancel() {
  MonitorLock lock(*lock_);
  cancelled_ = true;
  if (watch_) watch_->end();
  lock_->notify_all();
}

}  // namespace ddproof
