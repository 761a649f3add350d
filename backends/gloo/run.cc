#include <gloo/context.h>
#include <gloo/transport/context.h>

#include "backends/gloo/operations.h"

namespace ddproof::gloo_operations {
namespace {

// Gloo keeps a timeout in two places, and the second, which bcube's waits use, is protected.
struct ContextAccess : gloo::Context {
  static void set_timeout(gloo::Context& context, std::chrono::milliseconds timeout) {
    context.setTimeout(timeout);
    (context.*(&ContextAccess::transportContext_))->setTimeout(timeout);
  }
};

}  // namespace

void run(const Operation& operation) {
  ContextAccess::set_timeout(*operation.context, operation.timeout);
  switch (operation.call.op) {
    case Op::kAllReduce: return all_reduce(operation);
    case Op::kBroadcast: return broadcast(operation);
    case Op::kReduce: return reduce(operation);
    case Op::kAllGather: return all_gather(operation);
    case Op::kReduceScatter: return reduce_scatter(operation);
    case Op::kGather: return gather(operation);
    case Op::kScatter: return scatter(operation);
    case Op::kAllToAll: return all_to_all(operation);
    case Op::kSend: return send(operation);
    case Op::kRecv: return recv(operation);
    case Op::kBarrier: return barrier(operation);
    case Op::kMonitoredBarrier: return monitored_barrier(operation);
  }
}

}  // namespace ddproof::gloo_operations
