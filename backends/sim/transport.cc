#include "backends/sim/transport.h"

#include <gloo/common/error.h>
#include <gloo/common/logging.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/api/check.h"
#include "backends/api/error.h"
#include "backends/sim/sim_runtime.h"

namespace ddproof {
namespace {

using std::chrono::milliseconds;

[[noreturn]] void refuse(const std::string& what) {
  throw gloo::InvalidOperationException(what + " is not supported by the simulated transport");
}

class SimUnboundBuffer final : public gloo::transport::UnboundBuffer, public Poster {
 public:
  SimUnboundBuffer(gloo::transport::Context& context, Endpoint& endpoint, void* data,
                   std::size_t bytes)
      : UnboundBuffer(data, bytes), context_(context), endpoint_(endpoint) {}

  ~SimUnboundBuffer() override {
    if (sends_.posted > 0 || receives_.posted > 0) endpoint_.forget(*this);
  }

  bool waitRecv(int* rank, milliseconds timeout) override {
    return wait(receives_, sends_, rank, timeout);
  }
  bool waitSend(int* rank, milliseconds timeout) override {
    return wait(sends_, receives_, rank, timeout);
  }
  void abortWaitRecv() override { abort_wait(receives_); }
  void abortWaitSend() override { abort_wait(sends_); }

  void send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    add_post(sends_, {&peer, 1});
    endpoint_.send(*this, peer, slot, start_of(offset), length_of(offset, bytes));
  }
  void recv(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    add_post(receives_, {&peer, 1});
    endpoint_.receive(*this, peer, slot, start_of(offset), length_of(offset, bytes));
  }
  void recv(std::vector<int> peers, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    add_post(receives_, peers);
    endpoint_.receive_any(*this, std::move(peers), slot, start_of(offset),
                          length_of(offset, bytes));
  }

  void completed(Direction direction, int peer) override {
    Side& side = side_of(direction);
    ++side.completed;
    side.last_peer = peer;
    end_post(side, peer);
  }

  void failed(Direction direction, int peer, const Failure& failure) override {
    if (!failure_) failure_ = failure;
    end_post(side_of(direction), peer);
    wake(sends_);
    wake(receives_);
  }

 private:
  // The posts of one direction.
  struct Side {
    const char* name;
    int posted = 0;          // not done
    std::vector<int> peers;  // world ranks that could end those
    int completed = 0;       // done, and not waited for yet
    int last_peer = -1;      // of the latest one that is done
    bool is_aborted = false;
    sim::Fiber* waiter = nullptr;
  };

  Side& side_of(Direction direction) { return direction == Direction::kSend ? sends_ : receives_; }

  std::byte* start_of(std::size_t offset) const { return static_cast<std::byte*>(ptr) + offset; }

  std::size_t length_of(std::size_t offset, std::size_t bytes) const {
    if (bytes == kUnspecifiedByteCount) bytes = size - std::min(offset, size);
    // With more ranks than elements Gloo passes places behind the end, to move nothing there.
    DDPROOF_CHECK(bytes == 0 || (offset <= size && bytes <= size - offset));
    return bytes;
  }

  void add_post(Side& side, std::span<const int> peers) {
    ++side.posted;
    for (const int peer : peers) side.peers.push_back(endpoint_.world_rank_of(peer));
  }

  void end_post(Side& side, int peer) {
    if (--side.posted == 0) {
      side.peers.clear();
    } else if (peer >= 0) {
      const auto place = std::ranges::find(side.peers, endpoint_.world_rank_of(peer));
      if (place != side.peers.end()) side.peers.erase(place);
    }
    wake(side);
  }

  void wake(Side& side) {
    if (side.waiter != nullptr) endpoint_.fabric().simulation().wake(*side.waiter);
  }

  void abort_wait(Side& side) {
    side.is_aborted = true;
    wake(side);
  }

  [[noreturn]] void throw_failure() const {
    if (failure_->is_mismatch) {
      throw gloo::EnforceNotMet(__FILE__, __LINE__, "sizes agree", failure_->why);
    }
    throw gloo::IoException(failure_->why);
  }

  // True when a post is done, false when the wait was aborted.
  bool wait(Side& side, const Side& other, int* rank, milliseconds timeout) {
    if (timeout == gloo::transport::kUnsetTimeout) timeout = context_.getTimeout();
    const bool for_ever = timeout == gloo::kNoTimeout || timeout >= kGlooForever;
    sim::Simulation& simulation = endpoint_.fabric().simulation();
    const sim::Time limit =
        for_ever ? sim::kNever : std::chrono::duration_cast<Duration>(timeout).count();
    const sim::Deadline deadline{sim::add_time(simulation.now(), limit), true};
    while (side.completed == 0) {
      if (failure_) throw_failure();
      if (side.is_aborted) break;
      if (!wait_once(side, other, deadline)) {
        endpoint_.close();
        throw gloo::IoException("Timed out waiting " + std::to_string(timeout.count()) + "ms for " +
                                side.name + " operation to complete");
      }
    }
    if (std::exchange(side.is_aborted, false)) return false;
    --side.completed;
    if (rank != nullptr) *rank = side.last_peer;
    return true;
  }

  // False when the deadline passed.
  bool wait_once(Side& side, const Side& other, const sim::Deadline& deadline) {
    sim::Simulation& simulation = endpoint_.fabric().simulation();
    DDPROOF_CHECK(side.waiter == nullptr);
    struct Waiting {
      Side& side;
      Endpoint& endpoint;
      ~Waiting() { side.waiter = nullptr, --endpoint.waiting; }
    } waiting{side, endpoint_};
    side.waiter = simulation.current();
    ++endpoint_.waiting;
    // One post that names several peers takes a message from any of them. The callers of several
    // posts wait for all of these, one after another.
    const sim::WaitReason reason{.what = side.name,
                                 .ranks = &side.peers,
                                 .may_leave = &other.peers,
                                 .gathers = endpoint_.gathers(),
                                 .any = side.posted == 1 && side.peers.size() > 1};
    return with_comm_errors([&] { return simulation.wait(reason, deadline); });
  }

  gloo::transport::Context& context_;
  Endpoint& endpoint_;
  Side sends_{.name = "send"};
  Side receives_{.name = "recv"};
  std::optional<Failure> failure_;  // the first one
};

class SimAddress final : public gloo::transport::Address {
 public:
  explicit SimAddress(int rank) : rank_(rank) {}
  std::string str() const override { return "rank " + std::to_string(rank_); }
  std::vector<char> bytes() const override {
    const std::string text = str();
    return {text.begin(), text.end()};
  }

 private:
  int rank_;
};

// There is nothing to connect: the Fabric finds the other end by its rank.
class SimPair final : public gloo::transport::Pair {
 public:
  SimPair(Endpoint& endpoint, int peer) : endpoint_(endpoint), peer_(peer), address_(peer) {}

  const gloo::transport::Address& address() const override { return address_; }
  void connect(const std::vector<char>&) override {}
  void close() override { endpoint_.close(); }
  void setSync(bool, bool) override {}
  bool isConnected() { return !endpoint_.is_closed(); }  // later versions of Gloo ask

  std::unique_ptr<gloo::transport::Buffer> createSendBuffer(int, void*, std::size_t) override {
    refuse("a buffer bound to a pair");
  }
  std::unique_ptr<gloo::transport::Buffer> createRecvBuffer(int, void*, std::size_t) override {
    refuse("a buffer bound to a pair");
  }
  void send(gloo::transport::UnboundBuffer* buffer, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    buffer->send(peer_, slot, offset, bytes);
  }
  void recv(gloo::transport::UnboundBuffer* buffer, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    buffer->recv(peer_, slot, offset, bytes);
  }

 private:
  Endpoint& endpoint_;
  int peer_;
  SimAddress address_;
};

class SimContext final : public gloo::transport::Context {
 public:
  explicit SimContext(Endpoint& endpoint)
      : Context(endpoint.rank(), static_cast<int>(endpoint.group().endpoints.size())),
        endpoint_(endpoint) {
    // The base has made room for every pair; with thousands of ranks that is most of the memory.
    std::vector<std::unique_ptr<gloo::transport::Pair>>().swap(pairs_);
  }
  ~SimContext() override { endpoint_.close(); }

  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override {
    std::unique_ptr<gloo::transport::Pair>& pair = used_pairs_[rank];
    if (!pair && rank != this->rank) pair = std::make_unique<SimPair>(endpoint_, rank);
    return pair;
  }
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override { return getPair(rank); }

  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data,
                                                                      std::size_t bytes) override {
    return std::make_unique<SimUnboundBuffer>(*this, endpoint_, data, bytes);
  }

 private:
  Endpoint& endpoint_;
  std::map<int, std::unique_ptr<gloo::transport::Pair>> used_pairs_;
};

class SimDevice final : public gloo::transport::Device {
 public:
  explicit SimDevice(Endpoint& endpoint) : endpoint_(endpoint) {}
  std::string str() const override { return "simulator"; }
  const std::string& getPCIBusID() const override { return no_bus_; }
  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override {
    DDPROOF_CHECK(rank == endpoint_.rank());
    DDPROOF_CHECK(size == static_cast<int>(endpoint_.group().endpoints.size()));
    return std::make_shared<SimContext>(endpoint_);
  }

 private:
  Endpoint& endpoint_;
  std::string no_bus_;
};

// Gloo connects contexts through a store and a full mesh; this one needs neither.
struct ConnectedContext : gloo::Context {
  explicit ConnectedContext(Endpoint& endpoint)
      : Context(endpoint.rank(), static_cast<int>(endpoint.group().endpoints.size())) {
    device_ = std::make_shared<SimDevice>(endpoint);
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(getTimeout());
  }
};

}  // namespace

std::shared_ptr<gloo::Context> make_gloo_context(Endpoint& endpoint) {
  return std::make_shared<ConnectedContext>(endpoint);
}

}  // namespace ddproof
