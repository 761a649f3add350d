// The operations that only move bytes, each Gloo's own. All are run on bytes, so that the element
// type does not matter.
#include <gloo/allgather.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/scatter.h>

#include <cstdint>
#include <vector>

#include "backends/gloo/operations.h"

namespace ddproof::gloo_operations {
namespace {

// Gloo takes inputs as non-const; it does not write to them.
std::uint8_t* bytes_of(const ConstBuffer& buffer) {
  return const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(buffer.data()));
}

template <class Options>
Options options_for(const Operation& operation) {
  Options options(operation.context);
  options.setTag(operation.tag);
  options.setTimeout(operation.timeout);
  return options;
}

bool at_root(const Operation& operation) { return operation.context->rank == operation.call.root; }

}  // namespace

void broadcast(const Operation& operation) {
  const Buffer& data = operation.call.output;
  if (data.count() == 0) return;
  auto options = options_for<gloo::BroadcastOptions>(operation);
  options.setOutput(bytes_of(data), data.bytes());
  options.setRoot(operation.call.root);
  gloo::broadcast(options);
}

void all_gather(const Operation& operation) {
  const Call& call = operation.call;
  if (call.input.count() == 0) return;
  auto options = options_for<gloo::AllgatherOptions>(operation);
  options.setInput(bytes_of(call.input), call.input.bytes());
  options.setOutput(bytes_of(call.output), call.output.bytes());
  gloo::allgather(options);
}

void gather(const Operation& operation) {
  const Call& call = operation.call;
  if (call.input.count() == 0) return;
  auto options = options_for<gloo::GatherOptions>(operation);
  options.setInput(bytes_of(call.input), call.input.bytes());
  if (at_root(operation)) options.setOutput(bytes_of(call.output), call.output.bytes());
  options.setRoot(call.root);
  gloo::gather(options);
}

void scatter(const Operation& operation) {
  const Call& call = operation.call;
  if (call.output.count() == 0) return;
  auto options = options_for<gloo::ScatterOptions>(operation);
  if (at_root(operation)) {
    std::vector<std::uint8_t*> parts;
    for (int rank = 0; rank < operation.context->size; ++rank) {
      parts.push_back(bytes_of(call.input) + static_cast<std::size_t>(rank) * call.output.bytes());
    }
    options.setInputs(parts, call.output.bytes());
  }
  options.setOutput(bytes_of(call.output), call.output.bytes());
  options.setRoot(call.root);
  gloo::scatter(options);
}

void all_to_all(const Operation& operation) {
  const Call& call = operation.call;
  if (call.input.count() == 0) return;
  auto options = options_for<gloo::AlltoallOptions>(operation);
  options.setInput(bytes_of(call.input), call.input.bytes());
  options.setOutput(bytes_of(call.output), call.output.bytes());
  gloo::alltoall(options);
}

}  // namespace ddproof::gloo_operations
