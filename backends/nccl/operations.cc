#include "backends/nccl/operations.h"

#include "backends/api/check.h"
#include "backends/nccl/wire_format.h"

namespace ddproof::nccl {
namespace {

// `as_is` as it goes when nobody reduces it.
WireFormat plain_format(const ConstBuffer& as_is) {
  const DType dtype = as_is.type().dtype();
  return {nccl_type(dtype), ncclSum, as_is.type().size()};
}

// All-reduce, reduce and reduce-scatter.
Transfer reduction(const Call& call, int size, bool has_result) {
  return {.in = call.input,
          .out = has_result ? call.output : Buffer(),
          .format = wire_format(call.input.type().dtype(), call.reduce_op),
          .divisor = call.reduce_op == ReduceOp::kAverage ? size : 1,
          .over_input = call.op != Op::kReduceScatter};
}

Plan all_reduce(const Call& call, int size) {
  const Transfer transfer = reduction(call, size, true);
  return {Staging(transfer), "ncclAllReduce", false,
          [&call, format = transfer.format](const Staging& staging, ncclComm_t communicator,
                                            cudaStream_t stream) {
            return ncclAllReduce(staging.in(), staging.out(), elements_of(call.input), format.type,
                                 format.op, communicator, stream);
          }};
}

Plan reduce(const Call& call, int rank, int size) {
  const Transfer transfer = reduction(call, size, rank == call.root);
  return {Staging(transfer), "ncclReduce", false,
          [&call, format = transfer.format](const Staging& staging, ncclComm_t communicator,
                                            cudaStream_t stream) {
            return ncclReduce(staging.in(), staging.out(), elements_of(call.input), format.type,
                              format.op, call.root, communicator, stream);
          }};
}

Plan reduce_scatter(const Call& call, int size) {
  const Transfer transfer = reduction(call, size, true);
  return {Staging(transfer), "ncclReduceScatter", false,
          [&call, format = transfer.format](const Staging& staging, ncclComm_t communicator,
                                            cudaStream_t stream) {
            return ncclReduceScatter(staging.in(), staging.out(), elements_of(call.output),
                                     format.type, format.op, communicator, stream);
          }};
}

// The operations that move data send the elements as they are. `type`: one of the buffers that has
// elements on every rank.
Transfer movement(const ConstBuffer& in, const Buffer& out, const ConstBuffer& type) {
  return {.in = in, .out = out, .format = plain_format(type)};
}

Plan broadcast(const Call& call, int rank) {
  const bool at_root = rank == call.root;
  const Transfer transfer =
      movement(at_root ? call.input : ConstBuffer(), at_root ? Buffer() : call.output, call.output);
  return {Staging(transfer), "ncclBroadcast", false,
          [&call, at_root, type = transfer.format.type](
              const Staging& staging, ncclComm_t communicator, cudaStream_t stream) {
            std::byte* const data = at_root ? staging.in() : staging.out();
            return ncclBroadcast(data, data, elements_of(call.output), type, call.root,
                                 communicator, stream);
          }};
}

Plan all_gather(const Call& call) {
  const Transfer transfer = movement(call.input, call.output, call.input);
  return {Staging(transfer), "ncclAllGather", false,
          [&call, type = transfer.format.type](const Staging& staging, ncclComm_t communicator,
                                               cudaStream_t stream) {
            return ncclAllGather(staging.in(), staging.out(), elements_of(call.input), type,
                                 communicator, stream);
          }};
}

// Sends and receives of parts of one size. The first failure stands.
class Messages {
 public:
  Messages(const ConstBuffer& part, ncclComm_t communicator, cudaStream_t stream)
      : count_(elements_of(part)),
        type_(nccl_type(part.type().dtype())),
        communicator_(communicator),
        stream_(stream) {}

  void send(const std::byte* from, int peer) {
    if (is_accepted(result_)) result_ = ncclSend(from, count_, type_, peer, communicator_, stream_);
  }
  void receive(std::byte* to, int peer) {
    if (is_accepted(result_)) result_ = ncclRecv(to, count_, type_, peer, communicator_, stream_);
  }
  ncclResult_t result() const { return result_; }

 private:
  std::size_t count_;
  ncclDataType_t type_;
  ncclComm_t communicator_;
  cudaStream_t stream_;
  ncclResult_t result_ = ncclSuccess;
};

// `exchange(messages, staging)` sends and receives parts like `part`.
template <class Exchange>
Plan messages(const Call& call, const Transfer& transfer, const ConstBuffer& part,
              Exchange&& exchange) {
  return {Staging(transfer), std::string("the messages of ") + to_string(call.op), true,
          [part, exchange](const Staging& staging, ncclComm_t communicator, cudaStream_t stream) {
            Messages messages(part, communicator, stream);
            exchange(messages, staging);
            return messages.result();
          }};
}

// The place of a rank's part in a buffer with one for each.
std::size_t place_of(int rank, const ConstBuffer& part) {
  return static_cast<std::size_t>(rank) * part.bytes();
}

Plan gather(const Call& call, int rank, int size) {
  const ConstBuffer part = call.input;
  const bool at_root = rank == call.root;
  Plan plan = messages(call, movement(part, at_root ? call.output : Buffer(), part), part,
                       [=, &call](Messages& messages, const Staging& staging) {
                         if (!at_root) return messages.send(staging.in(), call.root);
                         for (int peer = 0; peer < size; ++peer) {
                           if (peer != rank)
                             messages.receive(staging.out(place_of(peer, part)), peer);
                         }
                       });
  if (at_root) plan.own_part = {place_of(rank, part), 0, part.bytes()};
  return plan;
}

Plan scatter(const Call& call, int rank, int size) {
  const ConstBuffer part = call.output;
  const bool at_root = rank == call.root;
  Plan plan = messages(call, movement(at_root ? call.input : ConstBuffer(), call.output, part),
                       part, [=, &call](Messages& messages, const Staging& staging) {
                         if (!at_root) return messages.receive(staging.out(), call.root);
                         for (int peer = 0; peer < size; ++peer) {
                           if (peer != rank) messages.send(staging.in(place_of(peer, part)), peer);
                         }
                       });
  if (at_root) plan.own_part = {0, place_of(rank, part), part.bytes()};
  return plan;
}

Plan all_to_all(const Call& call, int rank, int size) {
  const ConstBuffer part(call.input.data(), call.input.type(), Layout(call.input.count() / size));
  Plan plan = messages(call, movement(call.input, call.output, part), part,
                       [=](Messages& messages, const Staging& staging) {
                         for (int peer = 0; peer < size; ++peer) {
                           if (peer == rank) continue;
                           messages.send(staging.in(place_of(peer, part)), peer);
                           messages.receive(staging.out(place_of(peer, part)), peer);
                         }
                       });
  plan.own_part = {place_of(rank, part), place_of(rank, part), part.bytes()};
  return plan;
}

Plan send_or_recv(const Call& call) {
  const bool sends = call.op == Op::kSend;
  const ConstBuffer data = sends ? call.input : ConstBuffer(call.output);
  return messages(call, movement(call.input, call.output, data), data,
                  [sends, peer = call.peer](Messages& messages, const Staging& staging) {
                    if (sends) return messages.send(staging.in(), peer);
                    messages.receive(staging.out(), peer);
                  });
}

// An all-reduce of one number: nobody has the sum before all have given.
Plan barrier() {
  static constexpr std::int32_t kToken[] = {1};
  const ConstBuffer token = ConstBuffer::of(kToken);
  return {Staging(movement(token, Buffer(), token)), "ncclAllReduce of a barrier", false,
          [](const Staging& staging, ncclComm_t communicator, cudaStream_t stream) {
            return ncclAllReduce(staging.in(), staging.out(), 1, ncclInt32, ncclSum, communicator,
                                 stream);
          }};
}

}  // namespace

std::optional<Plan> make_plan(const Call& call, int rank, int size) {
  if (call.op == Op::kBarrier) return barrier();
  if (call.input.count() == 0 && call.output.count() == 0) return std::nullopt;
  switch (call.op) {
    case Op::kAllReduce: return all_reduce(call, size);
    case Op::kBroadcast: return broadcast(call, rank);
    case Op::kReduce: return reduce(call, rank, size);
    case Op::kAllGather: return all_gather(call);
    case Op::kReduceScatter: return reduce_scatter(call, size);
    case Op::kGather: return gather(call, rank, size);
    case Op::kScatter: return scatter(call, rank, size);
    case Op::kAllToAll: return all_to_all(call, rank, size);
    case Op::kSend:
    case Op::kRecv: return send_or_recv(call);
    case Op::kBarrier:
    case Op::kMonitoredBarrier: break;
  }
  DDPROOF_CHECK(false);
}

}  // namespace ddproof::nccl
