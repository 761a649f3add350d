// Gloo's all-reduce and reduce, and what it lacks built from them: average is the sum and one
// division, reduce_scatter an all-reduce of which each rank keeps its part.
#include <gloo/allreduce.h>
#include <gloo/reduce.h>

#include <cstddef>

#include "backends/gloo/operations.h"

namespace ddproof::gloo_operations {
namespace {

// Gloo's options know the element size from a C++ type; ours is known at run time only.
class AllReduceOptions : public gloo::AllreduceOptions {
 public:
  AllReduceOptions(const Operation& operation, void* data, std::size_t count, ElementType type)
      : gloo::AllreduceOptions(operation.context) {
    impl_.elements = count;
    impl_.elementSize = type.size();
    impl_.out.push_back(operation.context->createUnboundBuffer(data, count * type.size()));
    impl_.reduce = operation.payload.reduce(type, operation.call.reduce_op);
    impl_.tag = operation.tag;
    impl_.timeout = operation.timeout;
    const bool is_ring = uses_ring(operation.all_reduce, count * type.size());
    impl_.algorithm = is_ring ? Algorithm::RING : Algorithm::BCUBE;
  }
};

class ReduceOptions : public gloo::ReduceOptions {
 public:
  ReduceOptions(const Operation& operation, const ConstBuffer& in, void* result)
      : gloo::ReduceOptions(operation.context) {
    elements = static_cast<std::size_t>(in.count());
    elementSize = in.type().size();
    this->in = operation.context->createUnboundBuffer(const_cast<void*>(in.data()), in.bytes());
    out = operation.context->createUnboundBuffer(result, in.bytes());
    root = operation.call.root;
    reduce = operation.payload.reduce(in.type(), operation.call.reduce_op);
    tag = operation.tag;
    timeout = operation.timeout;
  }
};

void finish_average(const Operation& operation, const Buffer& data) {
  if (operation.call.reduce_op != ReduceOp::kAverage) return;
  operation.payload.divide(data, operation.context->size);
}

}  // namespace

bool uses_ring(AllReduceAlgorithm wanted, std::size_t bytes) {
  if (wanted == AllReduceAlgorithm::kAuto) return bytes > kBcubeBytesMax;
  return wanted == AllReduceAlgorithm::kRing;
}

void all_reduce(const Operation& operation) {
  const Buffer& data = operation.call.output;
  if (data.count() == 0) return;
  const bool is_free = operation.all_reduce == AllReduceAlgorithm::kAuto;
  if (is_free && takes_tree(operation.call, operation.context->size)) {
    return all_reduce_by_tree(operation);
  }
  gloo::allreduce(AllReduceOptions(operation, data.data(), static_cast<std::size_t>(data.count()),
                                   data.type()));
  finish_average(operation, data);
}

void reduce(const Operation& operation) {
  const Buffer& data = operation.call.output;
  if (data.count() == 0) return;
  // Gloo leaves partial sums in the output of every rank; the others' go to scratch (D4).
  const bool at_root = operation.context->rank == operation.call.root;
  const auto partial = at_root ? nullptr : scratch(data.bytes());
  ReduceOptions options(operation, data, at_root ? data.data() : partial.get());
  gloo::reduce(options);
  if (at_root) finish_average(operation, data);
}

void reduce_scatter(const Operation& operation) {
  const ConstBuffer& in = operation.call.input;
  const Buffer& out = operation.call.output;
  if (in.count() == 0) return;
  const auto whole = scratch(in.bytes());
  operation.payload.copy(whole.get(), in.data(), in.bytes());
  gloo::allreduce(
      AllReduceOptions(operation, whole.get(), static_cast<std::size_t>(in.count()), in.type()));
  const auto offset = static_cast<std::size_t>(operation.context->rank) * out.bytes();
  operation.payload.copy(out.data(), whole.get() + offset, out.bytes());
  finish_average(operation, out);
}

}  // namespace ddproof::gloo_operations
