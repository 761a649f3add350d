#include "backends/gloo/tcp/tcp_connection.h"

#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "backends/gloo/tcp/inquest.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;

// Gloo multiplies the timeout by this while it connects (gloo/transport/tcp/pair.h, waitUntil).
constexpr int kGlooConnectFactor = 5;

// Our store as Gloo's.
class StoreAdapter final : public gloo::rendezvous::Store {
 public:
  StoreAdapter(ddproof::Store& store, std::string prefix, Duration timeout)
      : store_(store), prefix_(std::move(prefix)), timeout_(timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    std::vector<std::string> full;
    for (const std::string& key : keys) full.push_back(prefix_ + key);
    store_.wait(full, timeout_);
  }
  // Gloo passes its context's timeout, which is shortened for its own sake.
  void wait(const std::vector<std::string>& keys, const milliseconds&) override { wait(keys); }

 private:
  ddproof::Store& store_;
  std::string prefix_;
  Duration timeout_;
};

std::string join_error(const TcpGroup& group, const std::string& what) {
  return "rank " + std::to_string(group.rank) + "/" + std::to_string(group.world_ranks.size()) +
         " [gloo] join: " + what;
}

// Returns when all ranks have come; a rank that does not come is named.
void meet(const TcpWorld& world, const TcpGroup& group, Duration timeout) {
  const std::string here = group.prefix + "/here/";
  world.store.set(here + std::to_string(group.rank), "");
  std::vector<std::string> keys;
  for (std::size_t rank = 0; rank < group.world_ranks.size(); ++rank) {
    keys.push_back(here + std::to_string(rank));
  }
  try {
    world.store.wait(keys, timeout);
  } catch (const CommError& error) {
    if (error.kind() != CommErrorKind::kTimeout) throw;
    std::vector<int> missing;
    std::string names;
    for (std::size_t rank = 0; rank < keys.size(); ++rank) {
      if (world.store.check({keys[rank]})) continue;
      missing.push_back(static_cast<int>(rank));
      names += (names.empty() ? "" : ", ") + std::to_string(rank);
    }
    throw CommError(
        CommErrorKind::kTimeout,
        join_error(group, (missing.size() == 1 ? "rank " : "ranks ") + names +
                              " did not come within " +
                              std::to_string(std::chrono::ceil<milliseconds>(timeout).count()) +
                              " ms; start every rank with the same MASTER_ADDR, "
                              "MASTER_PORT and WORLD_SIZE"),
        missing);
  }
}

class TcpConnection final : public GlooConnection {
 public:
  TcpConnection(TcpWorld world, TcpGroup group, std::shared_ptr<gloo::Context> context)
      : world_(std::move(world)), group_(std::move(group)), context_(std::move(context)) {}

  const std::shared_ptr<gloo::Context>& context() override { return context_; }

  // Gloo's Pair::close() does not wake this rank's own waits. A wait that times out does, and
  // closes all pairs; so one is made that times out at once.
  void close() override {
    try {
      char byte = 0;
      const auto buffer = context_->createUnboundBuffer(&byte, 1);
      buffer->waitRecv(nullptr, milliseconds(0));
    } catch (const std::exception&) {  // always: that is how Gloo reports the timeout
    }
  }

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
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace

std::unique_ptr<GlooConnection> connect_over_tcp(const TcpWorld& world, const TcpGroup& group,
                                                 Duration timeout) {
  meet(world, group, timeout);
  const auto context = std::make_shared<gloo::rendezvous::Context>(
      group.rank, static_cast<int>(group.world_ranks.size()));
  const milliseconds limit = std::min(std::chrono::ceil<milliseconds>(timeout), kGlooForever);
  context->setTimeout(std::max(limit / kGlooConnectFactor, milliseconds(1)));
  StoreAdapter store(world.store, group.prefix + "/mesh/", timeout);
  auto device = world.device;
  try {
    context->connectFullMesh(store, device);
    // A rank that goes on, and perhaps leaves, while others still connect would break their join.
    gloo::BarrierOptions everybody_is_connected(context);
    everybody_is_connected.setTimeout(std::max(limit, milliseconds(1)));
    gloo::barrier(everybody_is_connected);
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    throw CommError(CommErrorKind::kPeerLost,
                    join_error(group, std::string("cannot connect to every rank: ") + error.what() +
                                          "; check that the ranks' machines reach each other"));
  }
  return std::make_unique<TcpConnection>(world, group, context);
}

}  // namespace ddproof
