#include "backends/membership/meeting.h"

#include <exception>
#include <numeric>
#include <vector>

#include "backends/api/list_of.h"
#include "backends/membership/inquest.h"
#include "backends/membership/loss_watch.h"

namespace ddproof {
namespace {

// How long a rank that leaves waits for the store to take the news.
constexpr Duration kGoodbyeTimeout = std::chrono::milliseconds(500);

std::string next_generation(const std::string& backend, const Membership& membership,
                            Store& store) {
  const std::string rank = std::to_string(membership.rank);
  const std::string generation = std::to_string(store.add(backend + "/joins/" + rank, 1));
  const std::string mine = std::to_string(membership.world_size);
  const std::string agreed =
      store.compare_set(backend + "/" + generation + "/world_size", "", mine);
  if (agreed != mine) {
    throw ConfigError("backend " + backend + ": WORLD_SIZE is " + mine + " on rank " + rank +
                      ", but " + agreed + " on the rank that came first; give every rank the same");
  }
  return generation;
}

// After a timeout: throws, unless the last ones came just then.
void require_all_here(const StoreWorld& world, const StoreGroup& group, Duration timeout) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < group.size(); ++rank) keys.push_back(group.key("here", rank));
  const auto here = world.store.multi_get(keys);
  std::vector<int> missing;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!here[static_cast<std::size_t>(rank)]) missing.push_back(rank);
  }
  if (missing.empty()) return;
  throw JoinError(
      CommErrorKind::kTimeout,
      join_error(world, group,
                 did_not_come(missing, timeout) + "; start every rank with the same MASTER_ADDR, "
                                                  "MASTER_PORT and WORLD_SIZE"),
      missing);
}

}  // namespace

void require_membership(const std::string& backend, const Membership& membership) {
  if (membership.world_size < 1) {
    throw ConfigError("backend " + backend + ": world size is " +
                      std::to_string(membership.world_size) + ", it must be at least 1");
  }
  if (membership.rank < 0 || membership.rank >= membership.world_size) {
    throw ConfigError("backend " + backend + ": rank is " + std::to_string(membership.rank) +
                      ", allowed are 0 to " + std::to_string(membership.world_size - 1));
  }
}

JoinedWorld join_world(const std::string& backend, const Membership& membership, Runtime& runtime,
                       Store& store) {
  require_membership(backend, membership);
  const std::string generation = next_generation(backend, membership, store);
  const std::string lost_prefix = "lost/" + generation + "/";
  store.set_last_will(lost_prefix + std::to_string(membership.rank), "its process died");
  StoreGroup everybody{backend + "/" + generation, membership.rank, {}};
  everybody.world_ranks.resize(static_cast<std::size_t>(membership.world_size));
  std::iota(everybody.world_ranks.begin(), everybody.world_ranks.end(), 0);
  return {{runtime, store, backend, lost_prefix, membership.store_host}, everybody};
}

void meet(const StoreWorld& world, const StoreGroup& group, Duration timeout) {
  const std::string everybody = group.prefix + "/everybody";
  world.store.set(group.key("here", group.rank), "");
  if (world.store.add(group.prefix + "/arrived", 1) == group.size()) {
    world.store.set(everybody, "");
  }
  switch (await_key(world, group, everybody, timeout)) {
    case Awaited::kThere: return;
    case Awaited::kFailed: fail_to_connect(world, group, {false, "a rank is lost", timeout});
    case Awaited::kTimeout: return require_all_here(world, group, timeout);
  }
}

std::string join_error(const StoreWorld& world, const StoreGroup& group, const std::string& what) {
  return "rank " + std::to_string(group.rank) + "/" + std::to_string(group.size()) + " [" +
         world.backend + "] join: " + what;
}

void fail_to_connect(const StoreWorld& world, const StoreGroup& group, const Symptom& symptom) {
  const Finding finding = Inquest(world, group).explain(symptom);
  throw JoinError(finding.kind,
                  join_error(world, group,
                             "cannot connect to every rank: " + finding.what +
                                 "; see whether every rank lives, and check that the "
                                 "ranks' machines reach each other"),
                  finding.culprits);
}

void tell_cannot_connect(const StoreWorld& world, const StoreGroup& group, const std::string& why) {
  Inquest(world, group)
      .publish({CommErrorKind::kPeerLost,
                {group.rank},
                list_of({group.rank}) + " cannot connect (" + why + ")"});
}

void say_goodbye(const StoreWorld& world, const StoreGroup& group) noexcept {
  try {
    world.store.answering_by(world.runtime.now() + kGoodbyeTimeout)
        ->set(group.key("left", group.rank), "it left the group");
  } catch (...) {
    // The store is gone, or this rank died: the peers notice by themselves.
  }
}

}  // namespace ddproof
