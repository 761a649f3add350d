// One call to NCCL, as data: what communicators compare between ranks and carry out. Values.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>

namespace ddproof::standin {

struct NcclCall {
  enum class Kind { kAllReduce, kBroadcast, kReduce, kAllGather, kReduceScatter, kSend, kRecv };
  Kind kind = Kind::kAllReduce;
  std::size_t count = 0;  // as the call takes it
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int root = -1;
  int peer = -1;
  const void* in = nullptr;
  void* out = nullptr;
  bool hangs = false;  // by a script

  bool is_message() const { return kind == Kind::kSend || kind == Kind::kRecv; }
  const char* name() const;  // "ncclAllReduce"
  // How much it writes on this rank, in a communicator of `size`.
  std::size_t bytes_out(int rank, int size) const;
  // "ncclAllReduce of 4 float32, sum": equal for calls that fit. Of a message: what both ends
  // share.
  std::string describe() const;
};

// Bytes of one element; 0 for types that the stand-in does not know.
std::size_t size_of(ncclDataType_t type);

}  // namespace ddproof::standin
