#include "backends/nccl/standin/nccl_call.h"

namespace ddproof::standin {
namespace {

const char* name_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8: return "int8";
    case ncclUint8: return "uint8";
    case ncclInt32: return "int32";
    case ncclUint32: return "uint32";
    case ncclInt64: return "int64";
    case ncclUint64: return "uint64";
    case ncclFloat16: return "float16";
    case ncclBfloat16: return "bfloat16";
    case ncclFloat32: return "float32";
    case ncclFloat64: return "float64";
    default: return "of an unknown type";
  }
}

const char* name_of(ncclRedOp_t op) {
  switch (op) {
    case ncclSum: return "sum";
    case ncclProd: return "product";
    case ncclMax: return "max";
    case ncclMin: return "min";
    default: return "of an unknown operation";
  }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

const char* NcclCall::name() const {
  switch (kind) {
    case Kind::kAllReduce: return "ncclAllReduce";
    case Kind::kBroadcast: return "ncclBroadcast";
    case Kind::kReduce: return "ncclReduce";
    case Kind::kAllGather: return "ncclAllGather";
    case Kind::kReduceScatter: return "ncclReduceScatter";
    case Kind::kSend: return "ncclSend";
    case Kind::kRecv: return "ncclRecv";
  }
  return "unknown";
}

std::size_t NcclCall::bytes_out(int rank, int size) const {
  const std::size_t bytes = count * size_of(type);
  switch (kind) {
    case Kind::kSend: return 0;
    case Kind::kReduce: return rank == root ? bytes : 0;
    case Kind::kAllGather: return bytes * static_cast<std::size_t>(size);
    default: return bytes;
  }
}

std::string NcclCall::describe() const {
  const std::string what = std::to_string(count) + " " + name_of(type);
  if (is_message()) return what;
  std::string text = std::string(name()) + " of " + what;
  const bool reduces =
      kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kReduceScatter;
  if (reduces) text += std::string(", ") + name_of(op);
  if (root >= 0) text += ", root " + std::to_string(root);
  return text;
}

}  // namespace ddproof::standin
