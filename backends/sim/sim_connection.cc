#include "backends/sim/sim_connection.h"

#include <utility>

#include "backends/api/check.h"
#include "backends/api/list_of.h"
#include "backends/sim/transport.h"
#include "backends/sim/whole_calls.h"

namespace ddproof {

SimConnection::SimConnection(Endpoint& endpoint)
    : endpoint_(endpoint), context_(make_gloo_context(endpoint)) {}

bool SimConnection::run_whole(const gloo_operations::Operation& operation) {
  WholeCalls* whole_calls = endpoint_.fabric().whole_calls();
  return whole_calls != nullptr && whole_calls->run(endpoint_, operation);
}

Finding SimConnection::explain(const Symptom& symptom) {
  const Finding mine = find_out(symptom);
  publish(mine);
  return endpoint_.group().finding.value_or(mine);
}

void SimConnection::publish(const Finding& finding) {
  // The dead say nothing, though their stacks unwind through here.
  if (endpoint_.fabric().simulation().has_crashed(endpoint_.world_rank())) return;
  endpoint_.fabric().simulation().touch(endpoint_.group().key, sim::Access::kWrite);
  std::optional<Finding>& first = endpoint_.group().finding;
  if (!first) first = finding;
}

Finding SimConnection::find_out(const Symptom& symptom) const {
  const Group& group = endpoint_.group();
  // Who waits now, who has closed: all that others do.
  endpoint_.fabric().simulation().touch(sim::kEverything, sim::Access::kWrite);
  const std::vector<int> crashed = endpoint_.fabric().crashed_members(group);
  if (!crashed.empty()) {
    const char* verb = crashed.size() == 1 ? " is lost (it crashed)" : " are lost (they crashed)";
    return {CommErrorKind::kPeerLost, crashed, list_of(crashed) + verb};
  }
  if (!symptom.timed_out) {
    const int first = Fabric::first_closed(group);
    if (first < 0)
      return {CommErrorKind::kPeerLost, {}, symptom.detail + "; nobody left the group"};
    return {CommErrorKind::kPeerLost,
            {first},
            "rank " + std::to_string(first) + " is lost (it left the group)"};
  }
  std::vector<int> absent;
  for (const Endpoint& member : group.endpoints) {
    const bool has_come = symptom.peer ? member.rank() != symptom.peer || member.waiting > 0
                                       : member.collectives() >= endpoint_.collectives();
    if (!has_come) absent.push_back(member.rank());
  }
  // The others are told the same.
  std::string what =
      "the wait of rank " + std::to_string(endpoint_.rank()) + " is over: " + symptom.detail;
  if (!absent.empty()) what += "; " + list_of(absent) + " did not come";
  return {CommErrorKind::kTimeout, absent, what};
}

std::unique_ptr<GlooConnection> SimConnection::connect_subgroup(const std::string& name,
                                                                const std::vector<int>& members,
                                                                int my_rank, Duration) {
  std::vector<int> world_ranks;
  for (const int member : members) world_ranks.push_back(endpoint_.world_rank_of(member));
  Group& group = endpoint_.fabric().group(endpoint_.group().id, name, world_ranks);
  return std::make_unique<SimConnection>(group.endpoints[static_cast<std::size_t>(my_rank)]);
}

}  // namespace ddproof
