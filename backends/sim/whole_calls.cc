#include "backends/sim/whole_calls.h"

#include <gloo/common/error.h>

#include <algorithm>
#include <set>

#include "backends/api/check.h"
#include "backends/sim/fabric.h"
#include "backends/sim/payload_mode.h"
#include "backends/sim/sim_runtime.h"
#include "backends/sim/transport.h"
#include "backends/sim/whole_data.h"

namespace ddproof {
namespace {

using gloo_operations::Operation;

std::uint64_t to_argument(void* meeting) { return reinterpret_cast<std::uint64_t>(meeting); }

sim::Time limit_of(const Operation& operation) {
  if (operation.timeout >= kGlooForever) return sim::kNever;
  return std::chrono::duration_cast<Duration>(operation.timeout).count();
}

}  // namespace

WholeCalls::WholeCalls(sim::Simulation& simulation, const sim::NetworkOptions& network)
    : simulation_(simulation),
      network_(network),
      held_until_(static_cast<std::size_t>(simulation.ranks()), 0) {
  simulation.explain_events(this, [](std::uint64_t argument, sim::RankMarks& ranks) {
    for (const int member : reinterpret_cast<const Group*>(argument)->members) ranks.add(member);
  });
}

bool WholeCalls::can_run(const Operation& operation, const Endpoint& endpoint) const {
  const Call& call = operation.call;
  if (endpoint.is_closed() || is_point_to_point(call.op)) return false;
  if (call.op == Op::kBarrier || call.op == Op::kMonitoredBarrier) return true;
  return bytes_of_rank(call) > 0 && endpoint.payload() != PayloadMode::kHashed;
}

bool WholeCalls::run(Endpoint& endpoint, const Operation& operation) {
  if (!can_run(operation, endpoint)) return false;
  Group& group = endpoint.group();
  const auto [place, is_new] = meetings_.try_emplace({group.id, operation.tag});
  Meeting& meeting = place->second;
  const std::size_t ranks = group.endpoints.size();
  if (is_new) {
    meeting.group = &group;
    meeting.tag = operation.tag;
    meeting.operations.resize(ranks);
    meeting.waiting.resize(ranks);
    simulation_.at_end_of_time(sim::action_of<&WholeCalls::decide>(*this, to_argument(&meeting)));
  }
  struct Passage {
    WholeCalls& calls;
    Meeting& meeting;
    ~Passage() {
      ++meeting.passed;
      calls.forget_if_over(meeting);
    }
  } passage{*this, meeting};
  return join(meeting, endpoint.rank(), operation);
}

// Waits for the others, then for the end of the call.
bool WholeCalls::join(Meeting& meeting, int rank, const Operation& operation) {
  if (meeting.state != State::kGathers) return false;
  const auto place = static_cast<std::size_t>(rank);
  struct Presence {
    WholeCalls& calls;
    Meeting& meeting;
    std::size_t place;
    ~Presence() {
      meeting.operations[place] = nullptr;
      meeting.waiting[place] = nullptr;
      // A rank that dies while the others gather.
      if (meeting.state == State::kGathers)
        meeting.state = State::kByMessages, calls.wake_all(meeting);
    }
  } presence{*this, meeting, place};
  meeting.operations[place] = &operation;
  meeting.waiting[place] = simulation_.current();
  ++meeting.here;
  const auto is_over = [&] {
    if (meeting.state == State::kRuns) return meeting.ends[place] <= simulation_.now();
    return meeting.state != State::kGathers;
  };
  while (!is_over()) {
    with_comm_errors([&] { return simulation_.wait({.what = "the collective as a whole"}); });
  }
  if (meeting.state == State::kFailed) throw gloo::IoException(meeting.failure);
  return meeting.state == State::kRuns;
}

void WholeCalls::forget_if_over(const Meeting& meeting) {
  const auto ranks = static_cast<int>(meeting.operations.size());
  if (meeting.is_decided && meeting.passed == ranks)
    meetings_.erase({meeting.group->id, meeting.tag});
}

void WholeCalls::wake_all(Meeting& meeting) {
  for (sim::Fiber* fiber : meeting.waiting) {
    if (fiber != nullptr) simulation_.wake(*fiber);
  }
}

// All that could come at this time has come.
void WholeCalls::decide(std::uint64_t argument) {
  Meeting& meeting = *reinterpret_cast<Meeting*>(argument);
  Fabric& fabric = meeting.group->endpoints.front().fabric();
  if (fabric.has_departures()) {  // which may bring others here at this time yet
    simulation_.at_end_of_time(sim::action_of<&WholeCalls::decide>(*this, argument));
    return;
  }
  meeting.is_decided = true;
  if (meeting.state != State::kGathers) return forget_if_over(meeting);
  bool can_start = agree(meeting);
  for (const int member : meeting.group->members) {
    can_start = can_start && fabric.network().are_ports_free(member) && !holds(member);
  }
  if (can_start) return start(meeting);
  meeting.state = State::kByMessages;
  wake_all(meeting);
}

bool WholeCalls::agree(const Meeting& meeting) const {
  if (meeting.here < static_cast<int>(meeting.operations.size())) return false;
  const Operation& first = *meeting.operations.front();
  for (const Operation* operation : meeting.operations) {
    const Call& call = operation->call;
    const bool same = call.op == first.call.op && call.root == first.call.root &&
                      call.reduce_op == first.call.reduce_op &&
                      bytes_of_rank(call) == bytes_of_rank(first.call) &&
                      call.output.type() == first.call.output.type() &&
                      call.input.type() == first.call.input.type();
    if (!same) return false;
  }
  return true;
}

void WholeCalls::start(Meeting& meeting) {
  const Cost& cost = cost_of(meeting);
  for (const Operation* operation : meeting.operations) {
    if (cost.longest < limit_of(*operation)) continue;
    meeting.state = State::kByMessages;
    return wake_all(meeting);
  }
  meeting.state = State::kRuns;
  const Endpoint& endpoint = meeting.group->endpoints.front();
  if (endpoint.payload() == PayloadMode::kReal) {
    std::vector<const Call*> calls;
    for (const Operation* operation : meeting.operations) calls.push_back(&operation->call);
    compute_whole_data(calls, meeting.operations.front()->all_reduce);
  }
  std::set<sim::Time> ends;
  for (std::size_t rank = 0; rank < cost.time.size(); ++rank) {
    const sim::Time end = simulation_.now() + cost.time[rank];
    const int member = meeting.group->members[rank];
    meeting.ends.push_back(end);
    held_until_[static_cast<std::size_t>(member)] = end;
    sim::RankReport& report = simulation_.report_of(member);
    report.messages_sent += cost.traffic[rank].messages_sent;
    report.bytes_sent += cost.traffic[rank].bytes_sent;
    report.messages_received += cost.traffic[rank].messages_received;
    report.bytes_received += cost.traffic[rank].bytes_received;
    ends.insert(end);
  }
  for (const sim::Time end : ends) {
    simulation_.schedule(end,
                         sim::action_of<&WholeCalls::go_on>(*this, to_argument(meeting.group)));
  }
}

// Wakes those of a group whose time has come.
void WholeCalls::go_on(std::uint64_t argument) {
  const auto* group = reinterpret_cast<Group*>(argument);
  for (auto place = meetings_.lower_bound({group->id, 0});
       place != meetings_.end() && place->first.first == group->id; ++place) {
    Meeting& meeting = place->second;
    if (meeting.state != State::kRuns) continue;
    for (std::size_t rank = 0; rank < meeting.ends.size(); ++rank) {
      sim::Fiber* fiber = meeting.waiting[rank];
      if (fiber != nullptr && meeting.ends[rank] <= simulation_.now()) simulation_.wake(*fiber);
    }
  }
}

void WholeCalls::closed(Endpoint& endpoint) {
  for (auto& [name, meeting] : meetings_) {
    if (meeting.group != &endpoint.group()) continue;
    if (meeting.state == State::kGathers) meeting.state = State::kByMessages;
    // Who has done its part may leave: the others need it no more.
    const auto place = static_cast<std::size_t>(endpoint.rank());
    if (meeting.state == State::kRuns && meeting.ends[place] > simulation_.now()) {
      meeting.state = State::kFailed;
      for (const int member : meeting.group->members) {
        held_until_[static_cast<std::size_t>(member)] = 0;
      }
      meeting.failure = "Connection closed by peer [rank " + std::to_string(endpoint.rank()) + "]";
    }
    wake_all(meeting);
  }
}

const WholeCalls::Cost& WholeCalls::cost_of(const Meeting& meeting) {
  const Call& call = meeting.operations.front()->call;
  const ElementType type = call.output.count() > 0 ? call.output.type() : call.input.type();
  const Kind kind{meeting.group->key, call.op, std::string(type.name()), bytes_of_rank(call),
                  call.root};
  const auto [place, is_new] = costs_.try_emplace(kind);
  if (is_new) place->second = measure(meeting);
  return place->second;
}

// Runs the calls message by message in a world of their own. Data stay what they were, but for what
// Gloo copies within a rank, which belongs to the result.
WholeCalls::Cost WholeCalls::measure(const Meeting& meeting) const {
  Cost cost;
  const std::size_t ranks = meeting.operations.size();
  cost.time.resize(ranks);
  sim::Simulation simulation({.ranks = simulation_.ranks()});
  sim::Network network(simulation, network_);
  Fabric fabric(simulation, network, PayloadMode::kSizeOnly);
  Group& group = fabric.group(0, "whole", meeting.group->members);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    simulation.spawn(group.members[rank], "measured", [&, rank] {
      const Operation& original = *meeting.operations[rank];
      Endpoint& endpoint = group.endpoints[rank];
      const std::shared_ptr<gloo::Context> context = make_gloo_context(endpoint);
      Payload& payload = endpoint.begin_size_only();
      Call call = original.call;
      call.timeout = kForever;  // a watch on it would belong to the other simulation
      gloo_operations::run({context, original.runtime, call, payload, original.tag, kGlooForever,
                            original.all_reduce});
      cost.time[rank] = simulation.now();
    });
  }
  const sim::Report report = simulation.run();
  DDPROOF_CHECK(report.verdict == sim::Verdict::kNone);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const sim::RankReport& seen = report.ranks[static_cast<std::size_t>(group.members[rank])];
    cost.traffic.push_back(
        {seen.messages_sent, seen.bytes_sent, seen.messages_received, seen.bytes_received});
    cost.longest = std::max(cost.longest, cost.time[rank]);
  }
  return cost;
}

}  // namespace ddproof
