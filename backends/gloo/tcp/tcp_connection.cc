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

#include "backends/gloo/tcp/abortable_transport.h"
#include "backends/gloo/tcp/sigpipe_blocked.h"
#include "backends/membership/inquest.h"
#include "backends/membership/loss_watch.h"
#include "backends/membership/meeting.h"
#include "backends/membership/whereabouts.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;

// Gloo multiplies the timeout by this while it connects (gloo/transport/tcp/pair.h, waitUntil).
constexpr int kGlooConnectFactor = 5;

// Our store as Gloo's.
class StoreAdapter final : public gloo::rendezvous::Store {
 public:
  StoreAdapter(const TcpWorld& world, const StoreGroup& group, Duration timeout)
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
  const StoreGroup& group_;
  std::string prefix_;
  Duration timeout_;
};

class TcpConnection final : public GlooConnection {
 public:
  TcpConnection(const TcpWorld& world, StoreGroup group)
      : world_(world),
        group_(std::move(group)),
        device_(std::make_shared<AbortableDevice>(world_.device, world_.runtime)),
        mesh_(std::make_shared<gloo::rendezvous::Context>(group_.rank, group_.size())),
        context_(mesh_) {}

  ~TcpConnection() override {
    world_.whereabouts->leave(group_);
    say_goodbye(world_, group_);
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
  Payload& begin_call(const Call& call) override {
    world_.whereabouts->enter(group_, call);
    return GlooConnection::begin_call(call);
  }
  // A call that failed is left once its failure is explained: peers that fail at the same moment
  // ask where this rank was.
  void end_call(const Call&, bool completed) noexcept override {
    if (completed) world_.whereabouts->leave(group_);
  }
  void close() override { device_->abort(); }
  Finding explain(const Symptom& symptom) override {
    return Inquest(world_, group_).explain(symptom);
  }
  void publish(const Finding& finding) override { Inquest(world_, group_).publish(finding); }

  std::unique_ptr<GlooConnection> connect_subgroup(const std::string& name,
                                                   const std::vector<int>& members, int my_rank,
                                                   Duration timeout) override {
    return connect_over_tcp(world_, group_.part(name, members, my_rank), timeout);
  }

 private:
  TcpWorld world_;
  StoreGroup group_;
  std::shared_ptr<AbortableDevice> device_;
  std::shared_ptr<gloo::rendezvous::Context> mesh_;
  std::shared_ptr<gloo::Context> context_;  // the same
  std::unique_ptr<LossWatch> watch_;        // last: its task uses the others
};

}  // namespace

std::unique_ptr<GlooConnection> connect_over_tcp(const TcpWorld& world, const StoreGroup& group,
                                                 Duration timeout) {
  std::unique_ptr<TcpConnection> connection;  // leaves after its failure is known
  try {
    meet(world, group, timeout);
    connection = std::make_unique<TcpConnection>(world, group);
    connection->connect(timeout);
  } catch (const JoinError&) {
    throw;
  } catch (const std::exception& error) {  // this rank's own: the peers would wait for it
    tell_cannot_connect(world, group, error.what());
    throw;
  }
  return connection;
}

}  // namespace ddproof
