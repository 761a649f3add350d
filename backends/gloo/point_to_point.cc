// send and recv on one unbound buffer each. Gloo's TCP transport pairs them by slot, in order, and
// holds a send until the peer has posted its receive.
#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include "backends/gloo/operations.h"
#include "backends/gloo/slots.h"

namespace ddproof::gloo_operations {

void send(const Operation& operation) {
  const Call& call = operation.call;
  if (call.input.count() == 0) return;
  const auto buffer = operation.context->createUnboundBuffer(const_cast<void*>(call.input.data()),
                                                             call.input.bytes());
  buffer->send(call.peer, slot(SlotPrefix::kPointToPoint, call.tag));
  buffer->waitSend(operation.timeout);
}

void recv(const Operation& operation) {
  const Call& call = operation.call;
  if (call.output.count() == 0) return;
  const auto buffer =
      operation.context->createUnboundBuffer(call.output.data(), call.output.bytes());
  buffer->recv(call.peer, slot(SlotPrefix::kPointToPoint, call.tag));
  buffer->waitRecv(operation.timeout);
}

}  // namespace ddproof::gloo_operations
