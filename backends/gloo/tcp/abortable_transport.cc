#include "backends/gloo/tcp/abortable_transport.h"

#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {

using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

namespace {

[[noreturn]] void throw_aborted() {
  throw gloo::IoException("the group's connections were closed");
}

}  // namespace

// Shared by the device, its context and the buffers.
class AbortableDevice::State {
 public:
  explicit State(Runtime& runtime) : monitor_(runtime.make_monitor()) {}

  bool aborted() const { return aborted_; }

  void set_transport(std::shared_ptr<gloo::transport::Context> transport) {
    MonitorLock lock(*monitor_);
    DDPROOF_CHECK(!transport_);
    transport_ = std::move(transport);
  }

  void abort() {
    MonitorLock lock(*monitor_);
    aborted_ = true;
    if (transport_) close_pairs();
    // A buffer remembers this until its next wait, so it does not matter whether that has begun.
    for (UnboundBuffer* buffer : buffers_) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }

  std::unique_ptr<gloo::transport::Pair>& create_pair(int rank) {
    MonitorLock lock(*monitor_);  // abort() looks at all pairs
    if (aborted_) throw_aborted();
    try {
      return transport_->createPair(rank);
    } catch (const std::exception& error) {
      throw ResourceError("gloo: cannot open a socket for rank " + std::to_string(rank) + " (" +
                          error.what() +
                          "); see whether this machine has descriptors (ulimit -n) "
                          "and ports left");
    }
  }

  void add(UnboundBuffer* buffer) {
    MonitorLock lock(*monitor_);
    buffers_.insert(buffer);
  }

  void remove(UnboundBuffer* buffer) {
    MonitorLock lock(*monitor_);
    buffers_.erase(buffer);
  }

 private:
  // A wait that times out closes all pairs, and unlike Pair::close() it lets the data that is still
  // on the way arrive; so one is made that times out at once.
  void close_pairs() {
    try {
      char byte = 0;
      transport_->createUnboundBuffer(&byte, 1)->waitRecv(nullptr, milliseconds(0));
    } catch (const std::exception&) {  // always: that is how Gloo reports the timeout
    }
  }

  std::unique_ptr<Monitor> monitor_;  // guards all below; aborted_ is read without it
  std::atomic<bool> aborted_ = false;
  std::shared_ptr<gloo::transport::Context> transport_;
  std::set<UnboundBuffer*> buffers_;
};

class AbortableDevice::Buffer final : public UnboundBuffer {
 public:
  Buffer(std::shared_ptr<State> state, const gloo::transport::Context& context,
         std::unique_ptr<UnboundBuffer> inner)
      : UnboundBuffer(inner->ptr, inner->size),
        state_(std::move(state)),
        default_timeout_(context.getTimeout()),
        inner_(std::move(inner)) {
    state_->add(inner_.get());
  }
  ~Buffer() override { state_->remove(inner_.get()); }

  bool waitRecv(int* rank, milliseconds timeout) override {
    return completed(!state_->aborted() && inner_->waitRecv(rank, given(timeout)));
  }
  bool waitSend(int* rank, milliseconds timeout) override {
    return completed(!state_->aborted() && inner_->waitSend(rank, given(timeout)));
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int rank, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->send(rank, sized(slot, offset, bytes), offset, bytes);
  }
  void recv(int rank, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->recv(rank, sized(slot, offset, bytes), offset, bytes);
  }
  void recv(std::vector<int> ranks, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    inner_->recv(std::move(ranks), sized(slot, offset, bytes), offset, bytes);
  }

 private:
  bool completed(bool done) const {
    if (!done && state_->aborted()) throw_aborted();
    return done;
  }

  milliseconds given(milliseconds timeout) const {
    return timeout == gloo::transport::kUnsetTimeout ? default_timeout_ : timeout;
  }

  // Gloo's slots and ours leave the upper 16 bits free.
  std::uint64_t sized(std::uint64_t slot, std::size_t offset, std::size_t bytes) const {
    const std::uint64_t n = bytes == kUnspecifiedByteCount ? size - offset : bytes;
    return slot ^ ((n ^ (n >> 16) ^ (n >> 32) ^ (n >> 48)) << 48);
  }

  std::shared_ptr<State> state_;
  milliseconds default_timeout_;
  std::unique_ptr<UnboundBuffer> inner_;
};

class AbortableDevice::Context final : public gloo::transport::Context {
 public:
  Context(std::shared_ptr<State> state, std::shared_ptr<gloo::transport::Context> inner)
      : gloo::transport::Context(inner->rank, inner->size),
        state_(std::move(state)),
        inner_(std::move(inner)) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override {
    return inner_->getPair(peer);
  }
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override {
    inner_->setTimeout(getTimeout());  // which is how long the pair may take to connect
    return state_->create_pair(peer);
  }
  std::unique_ptr<UnboundBuffer> createUnboundBuffer(void* data, std::size_t bytes) override {
    return std::make_unique<Buffer>(state_, *this, inner_->createUnboundBuffer(data, bytes));
  }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<gloo::transport::Context> inner_;
};

AbortableDevice::AbortableDevice(std::shared_ptr<gloo::transport::Device> inner, Runtime& runtime)
    : inner_(std::move(inner)), state_(std::make_shared<State>(runtime)) {}

void AbortableDevice::abort() { state_->abort(); }

std::shared_ptr<gloo::transport::Context> AbortableDevice::createContext(int rank, int size) {
  std::shared_ptr<gloo::transport::Context> inner = inner_->createContext(rank, size);
  state_->set_transport(inner);
  return std::make_shared<Context>(state_, std::move(inner));
}

}  // namespace ddproof
