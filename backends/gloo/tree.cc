// All-reduce along a binomial tree, to rank 0 and back: 2 (n - 1) messages in 2 ceil(log2 n) steps,
// whatever n is. A rank's parent is itself without its lowest bit.
#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <bit>
#include <memory>

#include "backends/gloo/operations.h"
#include "backends/gloo/slots.h"

namespace ddproof::gloo_operations {

bool takes_tree(const Call& call, int ranks) {
  constexpr std::size_t kBytesMax = 1024;
  constexpr unsigned kOddPartMax = 16;
  const bool any_order = call.reduce_op == ReduceOp::kMin || call.reduce_op == ReduceOp::kMax;
  const auto size = static_cast<unsigned>(ranks);
  return any_order && call.output.bytes() <= kBytesMax &&
         size >> std::countr_zero(size) > kOddPartMax;
}

void all_reduce_by_tree(const Operation& operation) {
  const Buffer& data = operation.call.output;
  const int rank = operation.context->rank;
  const int ranks = operation.context->size;
  const auto theirs = scratch(data.bytes());
  const auto mine = operation.context->createUnboundBuffer(data.data(), data.bytes());
  const auto in = operation.context->createUnboundBuffer(theirs.get(), data.bytes());
  const auto combine = operation.payload.reduce(data.type(), operation.call.reduce_op);
  const std::uint64_t place = slot(SlotPrefix::kTree, operation.tag);
  int distance = 1;
  for (; distance < ranks && (rank & distance) == 0; distance *= 2) {
    if (rank + distance >= ranks) continue;
    in->recv(rank + distance, place);
    in->waitRecv(operation.timeout);
    combine(data.data(), data.data(), theirs.get(), static_cast<std::size_t>(data.count()));
  }
  if (rank != 0) {
    mine->send(rank - distance, place);
    mine->waitSend(operation.timeout);
    mine->recv(rank - distance, place);
    mine->waitRecv(operation.timeout);
  }
  while ((distance /= 2) > 0) {
    if (rank + distance >= ranks) continue;
    mine->send(rank + distance, place);
    mine->waitSend(operation.timeout);
  }
}

}  // namespace ddproof::gloo_operations
