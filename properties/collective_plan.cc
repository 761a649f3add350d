#include "properties/collective_plan.h"

namespace ddproof {
namespace {

// Even ranks send first. With an odd size the last rank and rank 0 are both even: the last one's
// message waits until rank 0 has sent its own.
void pass_around(ProcessGroup& group, ConstBuffer in, Buffer out) {
  const int next = (group.rank() + 1) % group.size();
  const int last = (group.rank() + group.size() - 1) % group.size();
  if (group.rank() % 2 == 0) {
    group.send(in, next)->wait();
    group.recv(out, last)->wait();
  } else {
    group.recv(out, last)->wait();
    group.send(in, next)->wait();
  }
}

}  // namespace

bool has_root(Op op) {
  return op == Op::kBroadcast || op == Op::kReduce || op == Op::kGather || op == Op::kScatter;
}

void make_call(ProcessGroup& group, Op op, ReduceOp reduce_op, int root, ConstBuffer in,
               Buffer out) {
  switch (op) {
    case Op::kAllReduce: return group.all_reduce(out, reduce_op)->wait();
    case Op::kBroadcast: return group.broadcast(out, root)->wait();
    case Op::kReduce: return group.reduce(out, root, reduce_op)->wait();
    case Op::kReduceScatter: return group.reduce_scatter(in, out, reduce_op)->wait();
    case Op::kAllGather: return group.all_gather(in, out)->wait();
    case Op::kGather: return group.gather(in, out, root)->wait();
    case Op::kScatter: return group.scatter(in, out, root)->wait();
    case Op::kAllToAll: return group.all_to_all(in, out)->wait();
    default: return pass_around(group, in, out);
  }
}

}  // namespace ddproof
