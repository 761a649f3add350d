#include "backends/nccl/nccl_link.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "backends/api/digest.h"
#include "backends/api/list_of.h"
#include "backends/membership/inquest.h"
#include "backends/membership/meeting.h"
#include "backends/nccl/monitored_barrier.h"

namespace ddproof::nccl {
namespace {

// How long a rank that leaves in peace waits for the store, and for its communicator to come to
// rest.
constexpr Duration kLeaveTimeout = std::chrono::seconds(2);

// The store's values may be shown in logs, so no raw bytes.
std::string to_hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 0xf];
  }
  return text;
}

std::string from_hex(const std::string& text) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(value(text[i]) * 16 + value(text[i + 1]));
  }
  return bytes;
}

// Ranks by what `key` holds for them; nobody's value is missing.
std::vector<std::string> values_of(const NcclWorld& world, const StoreGroup& group,
                                   const char* key) {
  std::vector<std::string> keys, values;
  for (int rank = 0; rank < group.size(); ++rank) keys.push_back(group.key(key, rank));
  for (const auto& value : world.store.multi_get(keys)) values.push_back(value.value_or(""));
  return values;
}

// Every rank sees the same, so every rank throws the same.
void require_own_devices(const NcclWorld& world, const StoreGroup& group) {
  const std::vector<std::string> devices = values_of(world, group, "device");
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto& device = devices[static_cast<std::size_t>(rank)];
    std::vector<int> users;
    for (int other = 0; other < group.size(); ++other) {
      if (devices[static_cast<std::size_t>(other)] == device) users.push_back(other);
    }
    if (users.size() == 1) continue;
    throw ConfigError("backend nccl: " + list_of(users) + " use one device (" + device +
                      "); give every rank of a machine a LOCAL_RANK and so a device of its own");
  }
}

// A call that has found out by itself why it fails.
struct FoundOut {
  Finding finding;
};

}  // namespace

std::unique_ptr<NcclLink> NcclLink::connect(const NcclWorld& world, const StoreGroup& group,
                                            Duration timeout) {
  std::unique_ptr<NcclLink> link(new NcclLink(world, group));  // leaves after its failure is known
  try {
    const DeviceIdentity device = identify_device(world.device);
    world.store.set(group.key("device", group.rank), device.name + " " + device.uuid);
    meet(world, group, timeout);
  } catch (const JoinError&) {
    throw;
  } catch (const std::exception& error) {  // this rank's own: the peers would wait for it
    tell_cannot_connect(world, group, error.what());
    throw;
  }
  require_own_devices(world, group);
  try {
    link->make_communicator(timeout);
  } catch (...) {
    const Finding finding = link->explain_failure(timeout);
    throw JoinError(finding.kind,
                    join_error(world, group,
                               "cannot make the communicator: " + finding.what +
                                   "; see whether every rank lives, and what NCCL_DEBUG=INFO says"),
                    finding.culprits);
  }
  return link;
}

void NcclLink::make_communicator(Duration timeout) {
  if (group_.size() > 1) {
    watch_ = std::make_unique<LossWatch>(
        world_, group_, [this] { close(); }, [this](int rank) { note_left(rank); });
  }
  const Patience patience(world_.runtime, timeout, [this] { return closed_.load(); });
  use_device(world_.device);
  device_.emplace(world_.runtime, *world_.pinned);
  const std::string id_key = group_.prefix + "/id";
  if (group_.rank == 0) world_.store.set(id_key, to_hex(make_unique_id()));
  if (const Awaited awaited = await_key(world_, group_, id_key, timeout);
      awaited != Awaited::kThere) {
    throw Interrupted{awaited == Awaited::kTimeout, "no unique id came from rank 0"};
  }
  const std::string id = world_.store.get(id_key, timeout);
  world_.store.set(group_.key("uses", group_.rank), std::to_string(digest_of(id)));
  device_->communicator.connect(from_hex(id), group_.rank, group_.size(), patience);
}

NcclLink::NcclLink(const NcclWorld& world, const StoreGroup& group)
    : world_(world),
      group_(group),
      failing_(world.runtime.make_monitor()),
      made_by_leavers_(group.world_ranks.size()) {
  for (auto& made : made_by_leavers_) made = kStays;
}

void NcclLink::note_left(int rank) {
  const auto made = world_.store.try_get(group_.key("made", rank));
  made_by_leavers_[static_cast<std::size_t>(rank)] = made ? std::stoull(*made) : 0;
}

bool NcclLink::is_hopeless(std::uint64_t collectives, const std::vector<int>& peers) const {
  if (closed_) return true;
  const auto made = [this](int rank) -> std::uint64_t {
    return made_by_leavers_[static_cast<std::size_t>(rank)];
  };
  for (const int peer : peers) {
    if (made(peer) != kStays) return true;
  }
  return std::ranges::any_of(made_by_leavers_,
                             [collectives](const auto& of_one) { return of_one < collectives; });
}

NcclLink::~NcclLink() {
  watch_.reset();
  if (device_ && !closed_) {
    try {
      use_device(world_.device);
      world_.store.answering_by(world_.runtime.now() + kLeaveTimeout)
          ->set(group_.key("made", group_.rank), std::to_string(collectives_));
      device_->communicator.finish(Patience(world_.runtime, kLeaveTimeout, [] { return false; }));
    } catch (...) {
      // It is aborted instead.
    }
  }
  device_.reset();
  say_goodbye(world_, group_);
}

std::unique_ptr<Launch> NcclLink::launch(std::span<const Call* const> calls) {
  Duration timeout = kForever;
  std::uint64_t collectives = 0;
  std::vector<int> peers;
  for (const Call* call : calls) {
    timeout = std::min(timeout, call->timeout);
    if (is_point_to_point(call->op)) {
      peers.push_back(call->peer);
    } else {
      collectives = ++collectives_;
    }
  }
  const Patience patience(world_.runtime, timeout,
                          [this, collectives, peers] { return is_hopeless(collectives, peers); });
  patience.check(to_string(calls.front()->op));
  use_device(world_.device);
  return std::make_unique<Launch>(*device_, calls, patience, group_.rank, group_.size());
}

void NcclLink::monitored_barrier(const Call& call) {
  const std::uint64_t collectives = ++collectives_;
  const Patience patience(world_.runtime, call.timeout,
                          [this, collectives] { return is_hopeless(collectives, {}); });
  patience.check(to_string(call.op));
  auto missing = nccl::monitored_barrier(world_, group_, call, ++monitored_barriers_, patience);
  if (missing) throw FoundOut{*std::move(missing)};
}

Finding NcclLink::explain_failure(Duration timeout) {
  close();
  MonitorLock lock(*failing_);
  if (!found_) found_ = find_out(timeout);
  return *found_;
}

void NcclLink::end_on_device() noexcept {
  if (device_) device_->communicator.abort();
}

Finding NcclLink::find_out(Duration timeout) {
  try {
    throw;
  } catch (const FoundOut& found) {
    return agree_on(found.finding);
  } catch (const Interrupted& interrupted) {
    if (interrupted.timed_out) {
      if (const auto finding = unequal_ids()) return agree_on(*finding);
    }
    return Inquest(world_, group_).explain({interrupted.timed_out, interrupted.detail, timeout});
  } catch (const Mismatch& error) {
    return agree_on({CommErrorKind::kMismatch, {}, error.what()});
  } catch (const CommError&) {  // of the store, or the simulator's verdict
    throw;
  } catch (const std::exception& error) {
    return agree_on(rank_is_lost(group_.rank, error.what()));
  }
}

Finding NcclLink::agree_on(const Finding& mine) {
  Inquest inquest(world_, group_);
  inquest.publish(mine);
  return inquest.explain({false, mine.what, Duration::zero()});
}

// A communicator whose ranks have different ids never comes about.
std::optional<Finding> NcclLink::unequal_ids() {
  try {
    const std::vector<std::string> ids = values_of(world_, group_, "uses");
    std::vector<int> odd;
    for (int rank = 1; rank < group_.size(); ++rank) {
      const auto& id = ids[static_cast<std::size_t>(rank)];
      if (!id.empty() && !ids[0].empty() && id != ids[0]) odd.push_back(rank);
    }
    if (odd.empty()) return std::nullopt;
    return Finding{CommErrorKind::kMismatch, odd,
                   list_of(odd) + " got another unique id than rank 0; nothing but the backend " +
                       "may write to the store's keys of " + group_.prefix};
  } catch (const CommError&) {
    return std::nullopt;  // the store is gone: the inquest says so
  }
}

void NcclLink::publish(const Finding& finding) { Inquest(world_, group_).publish(finding); }

}  // namespace ddproof::nccl
