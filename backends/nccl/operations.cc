#include "backends/nccl/operations.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "backends/api/check.h"
#include "backends/api/reduce_functions.h"
#include "backends/nccl/wire_format.h"

namespace ddproof::nccl {
namespace {

std::size_t elements_of(const ConstBuffer& buffer) {
  return static_cast<std::size_t>(buffer.count());
}

// Where a call's result goes on the device.
enum class Result { kOverInput, kAfterInput };

// The staging memory of one call: what goes in, and over or after it what comes out, at the same
// offsets in pinned and in device memory.
class Pass {
 public:
  Pass(const Operation& operation, std::size_t in_bytes, std::size_t out_bytes,
       Result result = Result::kAfterInput)
      : operation_(operation),
        in_bytes_(in_bytes),
        out_begin_(result == Result::kOverInput
                       ? 0
                       : (in_bytes + kAlignment - 1) / kAlignment * kAlignment),
        out_bytes_(out_bytes),
        lease_(operation.device.pinned.take(std::max(in_bytes, out_begin_ + out_bytes))),
        pinned_(lease_.data()),
        device_(operation.device.memory.at_least(std::max(in_bytes, out_begin_ + out_bytes))) {}

  cudaStream_t stream() const { return operation_.device.stream.get(); }
  std::byte* pinned_in() const { return pinned_; }
  const std::byte* pinned_out() const { return pinned_ + out_begin_; }
  std::byte* in(std::size_t offset = 0) const { return device_ + offset; }
  std::byte* out(std::size_t offset = 0) const { return device_ + out_begin_ + offset; }

  // Requires: pinned_in() was filled.
  void send_in() const { copy(device_, pinned_, in_bytes_, cudaMemcpyHostToDevice); }
  void copy_on_device(std::byte* to, const std::byte* from, std::size_t bytes) const {
    copy(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  // The call is over.
  void give_back() const { lease_.give_back(); }
  // Returns when all is done and pinned_out() is there.
  void fetch_out() const {
    if (out_bytes_ > 0) {
      copy(pinned_ + out_begin_, device_ + out_begin_, out_bytes_, cudaMemcpyDeviceToHost);
    }
    DeviceSide& device = operation_.device;
    device.event.record(device.stream);
    const std::string call = to_string(operation_.call.op);
    operation_.patience.until(call, [&] {
      device.communicator.check(call);
      return device.event.is_done();
    });
  }

 private:
  // NCCL is at its best with addresses that are.
  static constexpr std::size_t kAlignment = 256;

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
    check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream()), "cudaMemcpyAsync");
  }

  const Operation& operation_;
  std::size_t in_bytes_;
  std::size_t out_begin_;
  std::size_t out_bytes_;
  PinnedPool::Lease lease_;
  std::byte* pinned_;
  std::byte* device_;
};

// Elements to the wire and back.
void put(const WireFormat& format, std::byte* wire, const ConstBuffer& from) {
  if (from.count() == 0) return;
  if (format.encode != nullptr) return format.encode(wire, from.data(), elements_of(from));
  std::memcpy(wire, from.data(), from.bytes());
}

void take(const WireFormat& format, const std::byte* wire, const Buffer& to) {
  if (to.count() == 0) return;
  if (format.decode != nullptr) return format.decode(to.data(), wire, elements_of(to));
  std::memcpy(to.data(), wire, to.bytes());
}

// All-reduce, reduce and reduce-scatter: `enqueue(pass, format, communicator)` is the NCCL call.
template <class Enqueue>
void reduce_with(const Operation& operation, const char* name, Result result, bool has_result,
                 Enqueue&& enqueue) {
  const Call& call = operation.call;
  if (call.input.count() == 0) return;
  const WireFormat format = wire_format(call.input.type().dtype(), call.reduce_op);
  const std::size_t out_count = has_result ? elements_of(call.output) : 0;
  const Pass pass(operation, elements_of(call.input) * format.element_bytes,
                  out_count * format.element_bytes, result);
  put(format, pass.pinned_in(), call.input);
  pass.send_in();
  operation.device.communicator.run(name, operation.patience, [&](ncclComm_t communicator) {
    return enqueue(pass, format, communicator);
  });
  pass.fetch_out();
  if (has_result) {
    take(format, pass.pinned_out(), call.output);
    if (call.reduce_op == ReduceOp::kAverage) divide(call.output, operation.size);
  }
  pass.give_back();
}

void all_reduce(const Operation& operation) {
  reduce_with(operation, "ncclAllReduce", Result::kOverInput, true,
              [&](const Pass& pass, const WireFormat& format, ncclComm_t communicator) {
                return ncclAllReduce(pass.in(), pass.out(), elements_of(operation.call.input),
                                     format.type, format.op, communicator, pass.stream());
              });
}

void reduce(const Operation& operation) {
  reduce_with(operation, "ncclReduce", Result::kOverInput, operation.rank == operation.call.root,
              [&](const Pass& pass, const WireFormat& format, ncclComm_t communicator) {
                return ncclReduce(pass.in(), pass.out(), elements_of(operation.call.input),
                                  format.type, format.op, operation.call.root, communicator,
                                  pass.stream());
              });
}

void reduce_scatter(const Operation& operation) {
  reduce_with(operation, "ncclReduceScatter", Result::kAfterInput, true,
              [&](const Pass& pass, const WireFormat& format, ncclComm_t communicator) {
                return ncclReduceScatter(pass.in(), pass.out(), elements_of(operation.call.output),
                                         format.type, format.op, communicator, pass.stream());
              });
}

// The operations that move data: `in` and `out` are what this rank gives and gets; they go as bytes
// of their type. `enqueue(pass)` makes the calls.
template <class Enqueue>
void move(const Operation& operation, const ConstBuffer& in, const Buffer& out, Enqueue&& enqueue) {
  const Pass pass(operation, in.bytes(), out.bytes());
  if (in.count() > 0) {
    std::memcpy(pass.pinned_in(), in.data(), in.bytes());
    pass.send_in();
  }
  enqueue(pass);
  pass.fetch_out();
  if (out.count() > 0) std::memcpy(out.data(), pass.pinned_out(), out.bytes());
  pass.give_back();
}

void broadcast(const Operation& operation) {
  const Call& call = operation.call;
  if (call.output.count() == 0) return;
  const bool at_root = operation.rank == call.root;
  move(operation, at_root ? call.input : ConstBuffer(), at_root ? Buffer() : call.output,
       [&](const Pass& pass) {
         std::byte* data = at_root ? pass.in() : pass.out();
         operation.device.communicator.run(
             "ncclBroadcast", operation.patience, [&](ncclComm_t communicator) {
               return ncclBroadcast(data, data, elements_of(call.output),
                                    nccl_type(call.output.type().dtype()), call.root, communicator,
                                    pass.stream());
             });
       });
}

void all_gather(const Operation& operation) {
  const Call& call = operation.call;
  if (call.input.count() == 0) return;
  move(operation, call.input, call.output, [&](const Pass& pass) {
    operation.device.communicator.run(
        "ncclAllGather", operation.patience, [&](ncclComm_t communicator) {
          return ncclAllGather(pass.in(), pass.out(), elements_of(call.input),
                               nccl_type(call.input.type().dtype()), communicator, pass.stream());
        });
  });
}

// Sends and receives that go on together. The first failure stands.
class Messages {
 public:
  Messages(const Pass& pass, ncclComm_t communicator, const ConstBuffer& part)
      : pass_(pass),
        communicator_(communicator),
        count_(elements_of(part)),
        type_(nccl_type(part.type().dtype())) {}

  void send(const std::byte* from, int peer) {
    if (!is_accepted(result_)) return;
    result_ = ncclSend(from, count_, type_, peer, communicator_, pass_.stream());
  }
  void receive(std::byte* to, int peer) {
    if (!is_accepted(result_)) return;
    result_ = ncclRecv(to, count_, type_, peer, communicator_, pass_.stream());
  }
  ncclResult_t result() const { return result_; }

 private:
  const Pass& pass_;
  ncclComm_t communicator_;
  std::size_t count_;
  ncclDataType_t type_;
  ncclResult_t result_ = ncclSuccess;
};

// `exchange(messages)` sends and receives parts like `part`.
template <class Exchange>
void exchange_parts(const Operation& operation, const Pass& pass, const ConstBuffer& part,
                    Exchange&& exchange) {
  operation.device.communicator.run_together(
      std::string("the messages of ") + to_string(operation.call.op), operation.patience,
      [&](ncclComm_t communicator) {
        Messages messages(pass, communicator, part);
        exchange(messages);
        return messages.result();
      });
}

void gather(const Operation& operation) {
  const Call& call = operation.call;
  if (call.input.count() == 0) return;
  const std::size_t part = call.input.bytes();
  const bool at_root = operation.rank == call.root;
  move(operation, call.input, at_root ? call.output : Buffer(), [&](const Pass& pass) {
    const auto mine = static_cast<std::size_t>(operation.rank) * part;
    if (at_root) pass.copy_on_device(pass.out(mine), pass.in(), part);
    exchange_parts(operation, pass, call.input, [&](Messages& messages) {
      if (!at_root) return messages.send(pass.in(), call.root);
      for (int peer = 0; peer < operation.size; ++peer) {
        if (peer == operation.rank) continue;
        messages.receive(pass.out(static_cast<std::size_t>(peer) * part), peer);
      }
    });
  });
}

void scatter(const Operation& operation) {
  const Call& call = operation.call;
  if (call.output.count() == 0) return;
  const std::size_t part = call.output.bytes();
  const bool at_root = operation.rank == call.root;
  move(operation, at_root ? call.input : ConstBuffer(), call.output, [&](const Pass& pass) {
    const auto mine = static_cast<std::size_t>(operation.rank) * part;
    if (at_root) pass.copy_on_device(pass.out(), pass.in(mine), part);
    exchange_parts(operation, pass, call.output, [&](Messages& messages) {
      if (!at_root) return messages.receive(pass.out(), call.root);
      for (int peer = 0; peer < operation.size; ++peer) {
        if (peer == operation.rank) continue;
        messages.send(pass.in(static_cast<std::size_t>(peer) * part), peer);
      }
    });
  });
}

void all_to_all(const Operation& operation) {
  const Call& call = operation.call;
  if (call.input.count() == 0) return;
  const std::int64_t count = call.input.count() / operation.size;
  const ConstBuffer part(call.input.data(), call.input.type(), Layout(count));
  move(operation, call.input, call.output, [&](const Pass& pass) {
    const auto at = [&](int rank) { return static_cast<std::size_t>(rank) * part.bytes(); };
    pass.copy_on_device(pass.out(at(operation.rank)), pass.in(at(operation.rank)), part.bytes());
    exchange_parts(operation, pass, part, [&](Messages& messages) {
      for (int peer = 0; peer < operation.size; ++peer) {
        if (peer == operation.rank) continue;
        messages.send(pass.in(at(peer)), peer);
        messages.receive(pass.out(at(peer)), peer);
      }
    });
  });
}

void send_or_recv(const Operation& operation) {
  const Call& call = operation.call;
  const bool sends = call.op == Op::kSend;
  const ConstBuffer data = sends ? call.input : ConstBuffer(call.output);
  if (data.count() == 0) return;
  move(operation, call.input, call.output, [&](const Pass& pass) {
    exchange_parts(operation, pass, data, [&](Messages& messages) {
      if (sends) {
        messages.send(pass.in(), call.peer);
      } else {
        messages.receive(pass.out(), call.peer);
      }
    });
  });
}

// An all-reduce of one number: nobody has the sum before all have given.
void barrier(const Operation& operation) {
  constexpr std::int32_t kToken = 1;
  const Pass pass(operation, sizeof(kToken), sizeof(kToken));
  std::memcpy(pass.pinned_in(), &kToken, sizeof(kToken));
  pass.send_in();
  operation.device.communicator.run("ncclAllReduce of a barrier", operation.patience,
                                    [&](ncclComm_t communicator) {
                                      return ncclAllReduce(pass.in(), pass.out(), 1, ncclInt32,
                                                           ncclSum, communicator, pass.stream());
                                    });
  pass.fetch_out();
  pass.give_back();
}

}  // namespace

void run(const Operation& operation) {
  switch (operation.call.op) {
    case Op::kAllReduce: return all_reduce(operation);
    case Op::kBroadcast: return broadcast(operation);
    case Op::kReduce: return reduce(operation);
    case Op::kAllGather: return all_gather(operation);
    case Op::kReduceScatter: return reduce_scatter(operation);
    case Op::kGather: return gather(operation);
    case Op::kScatter: return scatter(operation);
    case Op::kAllToAll: return all_to_all(operation);
    case Op::kSend:
    case Op::kRecv: return send_or_recv(operation);
    case Op::kBarrier: return barrier(operation);
    case Op::kMonitoredBarrier: break;
  }
  DDPROOF_CHECK(false);
}

}  // namespace ddproof::nccl
