// What a reduction's elements are on the wire, so that NCCL's result is the one that ReduceOp
// promises (backends/api/call.h), which NCCL alone does not give.
//
//   min and max of floats  as integers in the order of the values, -0 before +0, NaN beyond both
//                          ends: NCCL's own drop a NaN, and leave open which zero wins
//   average                NCCL's sum; the one true division follows on the host. NCCL's own
//                          multiplies each input by 1/n first, which rounds otherwise
// All else goes as it is. Pure functions.
#pragma once

#include <nccl.h>

#include <cstddef>

#include "backends/api/call.h"
#include "backends/api/element.h"

namespace ddproof::nccl {

// NCCL's name of an element type. Requires: not DType::kCustom.
ncclDataType_t nccl_type(DType dtype);

struct WireFormat {
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  std::size_t element_bytes = 1;
  // `count` elements, host memory to wire and back; null: the bytes are the same.
  void (*encode)(void* wire, const void* elements, std::size_t count) = nullptr;
  void (*decode)(void* elements, const void* wire, std::size_t count) = nullptr;
};

WireFormat wire_format(DType dtype, ReduceOp op);

}  // namespace ddproof::nccl
