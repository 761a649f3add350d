// What collectives and messages leave in memory. Reductions go in rank order; minimum and maximum
// of floats drop a NaN, as NCCL's device code does, and as backends/nccl must not rely on.
#include <nccl.h>

#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "backends/api/reduce_functions.h"
#include "backends/api/visit_dtype.h"
#include "backends/nccl/standin/clique.h"

namespace ddproof::standin {
namespace {

using Bytes = std::vector<std::byte>;
using Inputs = std::vector<std::span<const std::byte>>;

// What is wrong is told, and the device is lost, as by an illegal address.
bool may_touch(Machine& machine, const Part& part, const void* address, std::size_t bytes,
               const char* how) {
  const ncclComm& member = *part.member;
  std::string wrong = machine.memory().refuse(*member.device, address, bytes);
  const Memory::Block* block = machine.memory().find(address);
  if (wrong.empty() && bytes > 0 && (block == nullptr || block->kind != Memory::Kind::kDevice)) {
    wrong = "memory that is not the device's";
  }
  if (wrong.empty()) return true;
  machine.complain_for(member.process, part.call.name(), std::string(how) + " " + wrong);
  member.device->error = cudaErrorIllegalAddress;
  return false;
}

bool read(Machine& machine, const Part& part, std::size_t bytes, std::span<const std::byte>& data) {
  if (!may_touch(machine, part, part.call.in, bytes, "reads")) return false;
  if (!machine.memory().is_written(part.call.in, bytes)) {
    machine.complain_for(part.member->process, part.call.name(),
                         "reads device memory that nothing has written yet");
  }
  data = {static_cast<const std::byte*>(part.call.in), bytes};
  return true;
}

bool write(Machine& machine, const Part& part, std::span<const std::byte> data) {
  if (!may_touch(machine, part, part.call.out, data.size(), "writes")) return false;
  if (!data.empty()) std::memmove(part.call.out, data.data(), data.size());  // may be in place
  machine.memory().note_written(part.call.out, data.size());
  return true;
}

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8: return DType::kInt8;
    case ncclInt32: return DType::kInt32;
    case ncclUint32: return DType::kUint32;
    case ncclInt64: return DType::kInt64;
    case ncclUint64: return DType::kUint64;
    case ncclFloat16: return DType::kFloat16;
    case ncclBfloat16: return DType::kBFloat16;
    case ncclFloat32: return DType::kFloat32;
    case ncclFloat64: return DType::kFloat64;
    default: return DType::kUint8;
  }
}

template <class T>
T extreme(T a, T b, bool want_less) {
  if constexpr (std::is_integral_v<T>) {
    return (a < b) == want_less ? a : b;
  } else if constexpr (std::is_same_v<T, double>) {
    return want_less ? std::fmin(a, b) : std::fmax(a, b);
  } else {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    return T(want_less ? std::fmin(x, y) : std::fmax(x, y));
  }
}

// into := into (op) from, element by element.
void combine(const NcclCall& call, Bytes& into, std::span<const std::byte> from) {
  const std::size_t count = into.size() / size_of(call.type);
  const DType dtype = dtype_of(call.type);
  if (call.op == ncclSum || call.op == ncclProd) {
    const ReduceOp op = call.op == ncclSum ? ReduceOp::kSum : ReduceOp::kProduct;
    return reduce_function(dtype, op)(into.data(), into.data(), from.data(), count);
  }
  visit_dtype(dtype, [&]<class T>(T) {
    auto* to = reinterpret_cast<T*>(into.data());
    const auto* other = reinterpret_cast<const T*>(from.data());
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = extreme(to[i], other[i], call.op == ncclMin);
    }
  });
}

bool read_all(Machine& machine, const std::vector<PartPtr>& by_rank, std::size_t bytes,
              Inputs& inputs) {
  inputs.resize(by_rank.size());
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!read(machine, *by_rank[rank], bytes, inputs[rank])) return false;
  }
  return true;
}

bool reduce(Machine& machine, const std::vector<PartPtr>& by_rank, std::size_t bytes,
            Bytes& result) {
  Inputs inputs;
  if (!read_all(machine, by_rank, bytes, inputs)) return false;
  result.assign(inputs[0].begin(), inputs[0].end());
  for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
    combine(by_rank[0]->call, result, inputs[rank]);
  }
  return true;
}

// `pick(rank)`: the bytes that this rank gets.
template <class Pick>
bool write_all(Machine& machine, const std::vector<PartPtr>& by_rank, Pick&& pick) {
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!write(machine, *by_rank[rank], pick(rank))) return false;
  }
  return true;
}

}  // namespace

bool carry_out(Machine& machine, const std::vector<PartPtr>& by_rank) {
  const NcclCall& call = by_rank[0]->call;
  const std::size_t bytes = call.count * size_of(call.type);
  const auto root = static_cast<std::size_t>(std::max(call.root, 0));
  Bytes data;
  switch (call.kind) {
    case NcclCall::Kind::kAllReduce:
      return reduce(machine, by_rank, bytes, data) &&
             write_all(machine, by_rank, [&](std::size_t) { return std::span(data); });
    case NcclCall::Kind::kReduce:
      return reduce(machine, by_rank, bytes, data) && write(machine, *by_rank[root], data);
    case NcclCall::Kind::kReduceScatter:
      return reduce(machine, by_rank, bytes * by_rank.size(), data) &&
             write_all(machine, by_rank, [&](std::size_t rank) {
               return std::span(data).subspan(rank * bytes, bytes);
             });
    case NcclCall::Kind::kBroadcast: {
      std::span<const std::byte> from;
      return read(machine, *by_rank[root], bytes, from) &&
             write_all(machine, by_rank, [&](std::size_t) { return from; });
    }
    case NcclCall::Kind::kAllGather: {
      Inputs inputs;
      if (!read_all(machine, by_rank, bytes, inputs)) return false;
      for (const auto& input : inputs) data.insert(data.end(), input.begin(), input.end());
      return write_all(machine, by_rank, [&](std::size_t) { return std::span(data); });
    }
    case NcclCall::Kind::kSend:
    case NcclCall::Kind::kRecv: break;
  }
  return false;
}

bool carry_out_message(Machine& machine, const Part& send, const Part& recv) {
  std::span<const std::byte> data;
  return read(machine, send, send.call.count * size_of(send.call.type), data) &&
         write(machine, recv, data);
}

}  // namespace ddproof::standin
