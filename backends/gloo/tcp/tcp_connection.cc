#include "backends/gloo/tcp/tcp_connection.h"

#include <gloo/barrier.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/list_of.h"
#include "backends/gloo/tcp/abortable_transport.h"
#include "backends/gloo/tcp/inquest.h"
#include "backends/gloo/tcp/loss_watch.h"
#include "backends/gloo/tcp/sigpipe_blocked.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;

// Gloo multiplies the timeout by this while it connects (gloo/transport/tcp/pair.h, waitUntil).
constexpr int kGlooConnectFactor = 5;

// How long a rank that leaves waits for the store to take the news.
constexpr Duration kGoodbyeTimeout = milliseconds(500);

// Our store as Gloo's.
class StoreAdapter final : public gloo::rendezvous::Store {
 public:
  StoreAdapter(const TcpWorld& world, const TcpGroup& group, Duration timeout)
      : world_(world), group_(group), prefix_(group.prefix + "/mesh/"), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    world_.store.set(prefix_ + key, {data.begin(), data.end()});
  }
  // Gloo has waited for the key.
  std::vector<char> get(const std::string& key) override {
    const std::string value = world_.store.get(prefix_ + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      switch (await_key(world_, group_, prefix_ + key, timeout_)) {
        case Awaited::kThere: break;
        case Awaited::kFailed: throw gloo::IoException("a rank is lost");
        case Awaited::kTimeout: throw gloo::IoException("Timed out waiting for an address");
      }
    }
  }
  // Gloo passes its context's timeout, which is shortened for its own sake.
  void wait(const std::vector<std::string>& keys, const milliseconds&) override { wait(keys); }

 private:
  const TcpWorld& world_;
  const TcpGroup& group_;
  std::string prefix_;
  Duration timeout_;
};

std::string join_error(const TcpGroup& group, const std::string& what) {
  return "rank " + std::to_string(group.rank) + "/" + std::to_string(group.size()) +
         " [gloo] join: " + what;
}

// Its peers know of the failure, or come to the same result by themselves.
class JoinError final : public CommError {
 public:
  using CommError::CommError;
};

[[noreturn]] void fail_to_connect(const TcpWorld& world, const TcpGroup& group,
                                  const Symptom& symptom) {
  const Finding finding = Inquest(world, group).explain(symptom);
  throw JoinError(finding.kind,
                  join_error(group, "cannot connect to every rank: " + finding.what +
                                        "; see whether every rank lives, and check that the "
                                        "ranks' machines reach each other"),
                  finding.culprits);
}

// After a timeout: throws, unless the last ones came just then.
void require_all_here(const TcpWorld& world, const TcpGroup& group, Duration timeout) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < group.size(); ++rank) keys.push_back(group.key("here", rank));
  const auto here = world.store.multi_get(keys);
  std::vector<int> missing;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!here[static_cast<std::size_t>(rank)]) missing.push_back(rank);
  }
  if (missing.empty()) return;
  throw JoinError(CommErrorKind::kTimeout,
                  join_error(group, did_not_come(missing, timeout) +
                                        "; start every rank with the same MASTER_ADDR, "
                                        "MASTER_PORT and WORLD_SIZE"),
                  missing);
}

// Returns when all ranks have come; a rank that does not come is named.
void meet(const TcpWorld& world, const TcpGroup& group, Duration timeout) {
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

class TcpConnection final : public GlooConnection {
 public:
  TcpConnection(const TcpWorld& world, TcpGroup group)
      : world_(world),
        group_(std::move(group)),
        device_(std::make_shared<AbortableDevice>(world_.device, world_.runtime)),
        mesh_(std::make_shared<gloo::rendezvous::Context>(group_.rank, group_.size())),
        context_(mesh_) {}

  ~TcpConnection() override {
    try {
      world_.store.answering_by(world_.runtime.now() + kGoodbyeTimeout)
          ->set(group_.key("left", group_.rank), "it left the group");
    } catch (const std::exception&) {
      // The store is gone: the peers see the closed connections all the same.
    }
  }

  // Connects each rank with each. Throws JoinError, and what hinders this rank alone: CommError of
  // the store, ResourceError.
  void connect(Duration timeout) {
    if (group_.size() > 1) {
      watch_ = std::make_unique<LossWatch>(world_, group_, [this] { close(); });
    }
    const milliseconds limit = std::min(std::chrono::ceil<milliseconds>(timeout), kGlooForever);
    mesh_->setTimeout(std::max(limit / kGlooConnectFactor, milliseconds(1)));
    StoreAdapter store(world_, group_, timeout);
    std::shared_ptr<gloo::transport::Device> device = device_;
    const SigpipeBlocked blocked;  // this may be the user's thread
    try {
      mesh_->connectFullMesh(store, device);
      // A rank that goes on, and perhaps leaves, while others still connect would break their join.
      gloo::BarrierOptions everybody_is_connected(context_);
      everybody_is_connected.setTimeout(std::max(limit, milliseconds(1)));
      gloo::barrier(everybody_is_connected);
    } catch (const CommError&) {  // of our store
      throw;
    } catch (const ResourceError&) {  // of our device
      throw;
    } catch (const std::exception& error) {
      close();
      fail_to_connect(world_, group_, {false, error.what(), timeout});
    }
  }

  const std::shared_ptr<gloo::Context>& context() override { return context_; }
  void close() override { device_->abort(); }
  Finding explain(const Symptom& symptom) override {
    return Inquest(world_, group_).explain(symptom);
  }
  void publish(const Finding& finding) override { Inquest(world_, group_).publish(finding); }

  std::unique_ptr<GlooConnection> connect_subgroup(const std::string& name,
                                                   const std::vector<int>& members, int my_rank,
                                                   Duration timeout) override {
    TcpGroup part{group_.prefix + "/" + name, my_rank, {}};
    for (int member : members) part.world_ranks.push_back(group_.world_ranks[member]);
    return connect_over_tcp(world_, part, timeout);
  }

 private:
  TcpWorld world_;
  TcpGroup group_;
  std::shared_ptr<AbortableDevice> device_;
  std::shared_ptr<gloo::rendezvous::Context> mesh_;
  std::shared_ptr<gloo::Context> context_;  // the same
  std::unique_ptr<LossWatch> watch_;        // last: its task uses the others
};

}  // namespace

std::unique_ptr<GlooConnection> connect_over_tcp(const TcpWorld& world, const TcpGroup& group,
                                                 Duration timeout) {
  std::unique_ptr<TcpConnection> connection;  // leaves after its failure is known
  try {
    meet(world, group, timeout);
    connection = std::make_unique<TcpConnection>(world, group);
    connection->connect(timeout);
  } catch (const JoinError&) {
    throw;
  } catch (const std::exception& error) {  // this rank's own: the peers would wait for it
    Inquest(world, group)
        .publish({CommErrorKind::kPeerLost,
                  {group.rank},
                  list_of({group.rank}) + " cannot connect (" + error.what() + ")"});
    throw;
  }
  return connection;
}

}  // namespace ddproof
