// Gloo's own transport with two things added to its buffers.
//
// Waits that can be ended. When a connection breaks, Gloo 0.5 wakes the waits for operations that
// have not begun, but not the wait for one that is half sent or half received
// (Pair::signalException in gloo/transport/tcp/pair.cc does not look at the unbound buffers in tx_
// and rx_), and a write that fails with EPIPE or ECONNRESET tells nobody. Such a wait lasts until
// its timeout. So this transport knows all its buffers and ends their waits itself, also of those
// that Gloo's algorithms make for their own use.
//
// Sizes that must agree. Gloo checks the size of what arrives in the device's thread, where the
// exception ends the process, and takes less than was expected without a word. Here the size is
// part of the slot, so that a send and a recv of different sizes do not meet: both end by their
// timeout. (16 bits of it: of unequal sizes, 1 pair in 65,536 does meet.)
//
// Threads: abort() from any; else as Gloo's own: one context at a time belongs to one task.
#pragma once

#include <gloo/transport/device.h>

#include <memory>
#include <string>

#include "backends/api/runtime.h"

namespace ddproof {

class AbortableDevice final : public gloo::transport::Device {
 public:
  // `runtime` must outlive this and the context that it creates.
  AbortableDevice(std::shared_ptr<gloo::transport::Device> inner, Runtime& runtime);

  // Closes all connections of the context, and ends every wait on it, for a connection or on a
  // buffer, with gloo::IoException, now and later. What was sent before still arrives at the peers.
  // Idempotent, never blocks, never throws.
  void abort();

  // At most once: one device is one group's. The context's createPair() throws ResourceError when
  // this machine gives no socket; what it throws later may be the peer's fault.
  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override;
  std::string str() const override { return inner_->str(); }
  const std::string& getPCIBusID() const override { return inner_->getPCIBusID(); }
  int getInterfaceSpeed() const override { return inner_->getInterfaceSpeed(); }

 private:
  class State;
  class Context;
  class Buffer;

  std::shared_ptr<gloo::transport::Device> inner_;
  std::shared_ptr<State> state_;
};

}  // namespace ddproof
